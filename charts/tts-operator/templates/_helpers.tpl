{{/* Name of every object of this release: "tts-operator", or "<release>-tts-operator" next to another release. */}}
{{- define "tts-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the operator's pods. They stay the same in every version, because a Deployment's selector is immutable. */}}
{{- define "tts-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "tts-operator.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: svc-tts
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* The value podLabels. Labels that the chart sets are rejected: a duplicate key is invalid YAML, and the selector must match. */}}
{{- define "tts-operator.podLabels" -}}
{{- $own := fromYaml (include "tts-operator.labels" .) -}}
{{- range $key, $_ := .Values.podLabels -}}
{{- if or (hasKey $own $key) (eq $key "app.kubernetes.io/component") -}}
{{- fail (printf "podLabels contains %s, a label that the chart sets: choose another label." $key) -}}
{{- end -}}
{{- end -}}
{{- toYaml .Values.podLabels -}}
{{- end -}}

{{- define "tts-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tts-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The image `.name` of .Values.images: "repository@digest", or "repository:tag". An empty tag means the chart's appVersion. */}}
{{- define "tts-operator.image" -}}
{{- $image := index .root.Values.images .name -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The security context of every container of this chart, for the Pod Security Standard "restricted". */}}
{{- define "tts-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end -}}

{{- define "tts-operator.podSecurity" -}}
runAsNonRoot: true
{{- if .Values.fixedUserIds }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/*
Validates a JWK set (RFC 7517), and returns it as JSON. It must contain a list "keys", and no private key, because a ConfigMap is not
confidential. The argument is a dict with the name of the value (value) and its text (jwks).
*/}}
{{- define "tts-operator.publicKeys" -}}
{{- $set := dict "keys" list -}}
{{- if .jwks -}}
{{- $set = fromJson .jwks -}}
{{- if hasKey $set "Error" -}}
{{- fail (printf "%s is not JSON: set it to a JWK set with --set-file %s=keys.json." .value .value) -}}
{{- end -}}
{{- if not (kindIs "slice" (get $set "keys")) -}}
{{- fail (printf "%s is JSON without a list \"keys\": set it to a JWK set (RFC 7517), not to a single key." .value) -}}
{{- end -}}
{{- range $set.keys -}}
{{- if not (kindIs "map" .) -}}{{- fail (printf "%s has an entry that is not a key: set it to a JWK set (RFC 7517)." $.value) -}}{{- end -}}
{{- if or (hasKey . "d") (hasKey . "k") -}}
{{- fail (printf "%s contains a private key (member \"d\" or \"k\"): set it to the public key only, and replace the key pair, because it was disclosed." $.value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $set -}}
{{- end -}}

{{/* "true" if a license key is trusted, because every TtsDeployment then needs a license. Otherwise empty. */}}
{{- define "tts-operator.requiresLicense" -}}
{{- $sets := list (include "tts-operator.publicKeys" (dict "value" "license.jwks" "jwks" .Values.license.jwks)) -}}
{{- if .Values.license.development.enabled -}}
{{- $sets = append $sets (include "tts-operator.publicKeys" (dict "value" "license.development.jwks" "jwks" .Values.license.development.jwks)) -}}
{{- end -}}
{{- range $sets -}}
{{- if (fromJson .).keys -}}true{{- end -}}
{{- end -}}
{{- end -}}
