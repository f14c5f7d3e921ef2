{{/*
Name of the TtsDeployment: the name of the release, or "<release>-<nameOverride>". The values name and fullnameOverride replace the whole
name.
*/}}
{{- define "tts-deployment.name" -}}
{{- $name := .Release.Name -}}
{{- if and .Values.nameOverride (not (contains .Values.nameOverride .Release.Name)) -}}
{{- $name = printf "%s-%s" .Release.Name .Values.nameOverride -}}
{{- end -}}
{{- $name = coalesce .Values.name .Values.fullnameOverride $name -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$" $name) -}}
{{- fail (printf "the name of the TtsDeployment would be %q, but a name has at most 40 characters of a-z, 0-9 and -, and starts with a letter: set the value name." $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The recommended labels of Kubernetes. Their names are reserved: commonLabels cannot change them. */}}
{{- define "tts-deployment.recommendedLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: speech
app.kubernetes.io/part-of: svc-tts
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/*
Labels of every object: the recommended labels and commonLabels. The argument is a dict with the root context (root) and more labels
(more), which have priority.
*/}}
{{- define "tts-deployment.labels" -}}
{{- $labels := fromYaml (include "tts-deployment.recommendedLabels" .root) -}}
{{- range $key, $value := .root.Values.commonLabels -}}
{{- if hasKey $labels $key -}}
{{- fail (printf "commonLabels contains %s, a label that the chart sets: choose another label." $key) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := .root.Values.commonLabels -}}{{- $_ := set $labels $key $value -}}{{- end -}}
{{- range $key, $value := .more -}}{{- $_ := set $labels $key $value -}}{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/*
The field `annotations` with commonAnnotations and the annotations of one object, which have priority. The result is empty without
annotations. The argument is a dict with the root context (root) and the object's annotations (own).
*/}}
{{- define "tts-deployment.annotations" -}}
{{- $annotations := dict -}}
{{- range $key, $value := .root.Values.commonAnnotations -}}{{- $_ := set $annotations $key $value -}}{{- end -}}
{{- range $key, $value := .own -}}{{- $_ := set $annotations $key $value -}}{{- end -}}
{{- with $annotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/*
The image of the test's pod, in the registry global.imageRegistry. The first part of a repository is a registry if it contains a dot or a
colon or is "localhost", as in every container runtime.
*/}}
{{- define "tts-deployment.testImage" -}}
{{- $registry := (.Values.global).imageRegistry -}}
{{- $image := .Values.test.image -}}
{{- $parts := splitList "/" $image.repository -}}
{{- if and $registry (gt (len $parts) 1) (or (regexMatch "[.:]" (first $parts)) (eq (first $parts) "localhost")) -}}
{{- $parts = rest $parts -}}
{{- end -}}
{{- if $registry -}}{{- $parts = prepend $parts $registry -}}{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" (join "/" $parts) $image.digest -}}
{{- else -}}
{{- printf "%s:%s" (join "/" $parts) (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* "true" if the chart creates an API key: the values configure no other keys. Otherwise the result is empty. */}}
{{- define "tts-deployment.generatesKey" -}}
{{- if and .Values.secrets.generateKey (not .Values.secrets.keys) (not (dig "api" "keys" "" .Values.spec)) -}}true{{- end -}}
{{- end -}}

{{/* The spec from the values. The names of the Secrets that this chart creates and the pull secrets of global are added. */}}
{{- define "tts-deployment.spec" -}}
{{- $name := include "tts-deployment.name" . -}}
{{- $spec := deepCopy .Values.spec -}}
{{- $license := dig "license" "secretRef" "name" "" $spec -}}
{{- if and .Values.secrets.license $license -}}
{{- fail "secrets.license and spec.license.secretRef.name are both set: set only one of them." -}}
{{- else if .Values.secrets.license -}}
{{- $_ := set $spec "license" (mergeOverwrite (deepCopy (default dict $spec.license)) (dict "secretRef" (dict "name" (printf "%s-license" $name) "key" "license.jwt"))) -}}
{{- else if and $spec.license (not $license) -}}
{{- fail "spec.license names no Secret: set the license with --set-file secrets.license=license.jwt, name its Secret in spec.license.secretRef.name, or remove spec.license if the operator requires no license." -}}
{{- end -}}
{{- if or .Values.secrets.keys (include "tts-deployment.generatesKey" .) -}}
{{- if get (default dict (dig "api" "keys" dict $spec)) "secretRef" -}}
{{- fail "secrets.keys and spec.api.keys.secretRef are both set: set only one of them." -}}
{{- end -}}
{{- $_ := set $spec "api" (mergeOverwrite (deepCopy (default dict $spec.api)) (dict "keys" (dict "secretRef" (dict "name" (printf "%s-keys" $name))))) -}}
{{- end -}}
{{- with (.Values.global).imagePullSecrets -}}
{{- $names := list -}}
{{- range concat (default list $spec.imagePullSecrets) . -}}
{{- if kindIs "string" . -}}{{- $names = append $names . -}}{{- else -}}{{- $names = append $names .name -}}{{- end -}}
{{- end -}}
{{- $secrets := list -}}
{{- range uniq $names -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- $_ := set $spec "imagePullSecrets" $secrets -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}
