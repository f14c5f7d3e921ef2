{{/*
Name of every object of this release: "tts-operator", or "<release>-tts-operator" next to another release. nameOverride replaces
"tts-operator", and fullnameOverride replaces the whole name.
*/}}
{{- define "tts-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the operator's pods. They stay the same in every version, because a Deployment's selector is immutable. */}}
{{- define "tts-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* The recommended labels of Kubernetes. Their names are reserved: commonLabels and podLabels cannot change them. */}}
{{- define "tts-operator.recommendedLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: svc-tts
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* Labels of every object: the recommended labels and commonLabels. */}}
{{- define "tts-operator.labels" -}}
{{- include "tts-operator.labelsWith" (dict "root" .) -}}
{{- end -}}

{{/* Labels of every object, and more labels. The argument is a dict with the root context (root) and the labels (more), which have priority. */}}
{{- define "tts-operator.labelsWith" -}}
{{- include "tts-operator.checkLabels" (dict "root" .root "value" "commonLabels") -}}
{{- $labels := fromYaml (include "tts-operator.recommendedLabels" .root) -}}
{{- range $key, $value := .root.Values.commonLabels -}}{{- $_ := set $labels $key $value -}}{{- end -}}
{{- range $key, $value := .more -}}{{- $_ := set $labels $key $value -}}{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/*
Rejects labels of the value `.value` that the chart sets, because the selectors must match. It also rejects labels that aggregate ClusterRoles,
because they would grant the operator's permissions to users.
*/}}
{{- define "tts-operator.checkLabels" -}}
{{- $reserved := fromYaml (include "tts-operator.recommendedLabels" .root) -}}
{{- range $key, $_ := index .root.Values .value -}}
{{- if or (hasKey $reserved $key) (hasPrefix "rbac.authorization.k8s.io/" $key) -}}
{{- fail (printf "%s contains %s, a label that the chart sets: choose another label." $.value $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tts-operator.podLabels" -}}
{{- include "tts-operator.checkLabels" (dict "root" . "value" "podLabels") -}}
{{- include "tts-operator.labelsWith" (dict "root" . "more" .Values.podLabels) -}}
{{- end -}}

{{/*
The field `annotations` with commonAnnotations and the annotations of one object, which have priority. The result is empty without
annotations. The argument is a dict with the root context (root) and the object's annotations (own).
*/}}
{{- define "tts-operator.annotations" -}}
{{- $annotations := dict -}}
{{- range $key, $value := .root.Values.commonAnnotations -}}{{- $_ := set $annotations $key $value -}}{{- end -}}
{{- range $key, $value := .own -}}{{- $_ := set $annotations $key $value -}}{{- end -}}
{{- with $annotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
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
{{- $repository := include "tts-operator.repository" (dict "root" .root "repository" $image.repository) -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
The repository `.repository` in the registry global.imageRegistry. The first part of a repository is a registry if it contains a dot or a
colon or is "localhost", as in every container runtime.
*/}}
{{- define "tts-operator.repository" -}}
{{- $registry := (.root.Values.global).imageRegistry -}}
{{- $parts := splitList "/" .repository -}}
{{- if and $registry (gt (len $parts) 1) (or (regexMatch "[.:]" (first $parts)) (eq (first $parts) "localhost")) -}}
{{- $parts = rest $parts -}}
{{- end -}}
{{- if $registry -}}{{- $parts = prepend $parts $registry -}}{{- end -}}
{{- join "/" $parts -}}
{{- end -}}

{{/* The list of pull secrets: imagePullSecrets and global.imagePullSecrets without duplicates. The result is empty without pull secrets. */}}
{{- define "tts-operator.pullSecrets" -}}
{{- $names := list -}}
{{- range concat (default list .Values.imagePullSecrets) (default list (.Values.global).imagePullSecrets) -}}
{{- if kindIs "string" . -}}{{- $names = append $names . -}}{{- else -}}{{- $names = append $names .name -}}{{- end -}}
{{- end -}}
{{- $secrets := list -}}
{{- range uniq $names -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- with $secrets -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* The security context of every container of this chart. The default complies with the Pod Security Standard "restricted". */}}
{{- define "tts-operator.containerSecurity" -}}
{{- toYaml .Values.containerSecurityContext -}}
{{- end -}}

{{/* The security context of every pod of this chart. The fields of podSecurityContext override the IDs of fixedUserIds. */}}
{{- define "tts-operator.podSecurity" -}}
{{- $context := dict -}}
{{- if .Values.fixedUserIds -}}
{{- $context = dict "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 -}}
{{- end -}}
{{- range $key, $value := .Values.podSecurityContext -}}{{- $_ := set $context $key $value -}}{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{/* Rejects variables and volumes that the chart sets, because a duplicate name is an error in some clients and an override in others. */}}
{{- define "tts-operator.checkExtras" -}}
{{- range .Values.extraEnv -}}
{{- if or (hasPrefix "TTS_" .name) (has .name (list "POD_NAME" "POD_NAMESPACE")) -}}
{{- fail (printf "extraEnv contains %s, a variable that the chart sets: use the value of the chart for this setting." .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumes -}}
{{- if has .name (list "license-keys" "class") -}}
{{- fail (printf "extraVolumes contains %s, a volume that the chart sets: choose another name." .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The list of topologySpreadConstraints. A constraint without a labelSelector selects the operator's pods. */}}
{{- define "tts-operator.topologySpread" -}}
{{- $constraints := list -}}
{{- range .Values.topologySpreadConstraints -}}
{{- $constraint := deepCopy . -}}
{{- if not (hasKey $constraint "labelSelector") -}}
{{- $_ := set $constraint "labelSelector" (dict "matchLabels" (fromYaml (include "tts-operator.selectorLabels" $))) -}}
{{- end -}}
{{- $constraints = append $constraints $constraint -}}
{{- end -}}
{{- with $constraints -}}{{- toYaml . -}}{{- end -}}
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

{{/* "true" if a license key is trusted. Otherwise the result is empty. */}}
{{- define "tts-operator.trustsKey" -}}
{{- $sets := list (include "tts-operator.publicKeys" (dict "value" "license.jwks" "jwks" .Values.license.jwks)) -}}
{{- if .Values.license.development.enabled -}}
{{- $sets = append $sets (include "tts-operator.publicKeys" (dict "value" "license.development.jwks" "jwks" .Values.license.development.jwks)) -}}
{{- end -}}
{{- range $sets -}}
{{- if (fromJson .).keys -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" if every TtsDeployment needs a license. Otherwise the result is empty. */}}
{{- define "tts-operator.requiresLicense" -}}
{{- if eq .Values.license.scope "All" }}{{ include "tts-operator.trustsKey" . }}{{ end -}}
{{- end -}}
