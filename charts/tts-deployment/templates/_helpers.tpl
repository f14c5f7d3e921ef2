{{- define "tts-deployment.name" -}}
{{- $name := default .Release.Name .Values.name -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$" $name) -}}
{{- fail (printf "the name of the TtsDeployment would be %q, but a name has at most 40 characters of a-z, 0-9 and -, and starts with a letter: set the value name." $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "tts-deployment.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: svc-tts
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* The spec from the values. The names of the Secrets that this chart creates are added. */}}
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
{{- if .Values.secrets.keys -}}
{{- if get (default dict (dig "api" "keys" dict $spec)) "secretRef" -}}
{{- fail "secrets.keys and spec.api.keys.secretRef are both set: set only one of them." -}}
{{- end -}}
{{- $_ := set $spec "api" (mergeOverwrite (deepCopy (default dict $spec.api)) (dict "keys" (dict "secretRef" (dict "name" (printf "%s-keys" $name))))) -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}
