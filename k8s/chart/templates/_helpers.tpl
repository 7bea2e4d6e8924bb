{{- define "headgate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-headgate" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "headgate.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: headgate
{{ include "headgate.selector" . }}
{{- end }}

{{/* Without a component it selects everything of ours. */}}
{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "headgate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "headgate.endpointsConfigMap" -}}
{{ .Values.endpoints.existingConfigMap | default (printf "%s-endpoints" (include "headgate.name" .)) }}
{{- end }}

{{- define "headgate.keysSecret" -}}
{{- if .Values.keys.existingSecret }}{{ .Values.keys.existingSecret }}{{ else if .Values.keys.values }}{{ include "headgate.name" . }}-keys{{ end }}
{{- end }}

{{- define "headgate.valkeySecret" -}}
{{- if .Values.valkey.enabled }}{{ .Values.valkey.auth.existingSecret | default (printf "%s-valkey" (include "headgate.name" .)) }}{{ else }}{{ .Values.externalValkey.existingSecret }}{{ end }}
{{- end }}

{{- define "headgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "headgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What both services are told; a variable of `settings` rules over ours. Called with root and own. */}}
{{- define "headgate.env" -}}
{{- $root := .root }}
{{- $ours := dict "CONFIG_FILE" "/etc/headgate/endpoints.json" "SERVER_PORT" "8080" "METRICS_PORT" "9090" "HEALTH_CHECKER_SERVER_PORT" "8080" }}
{{- $_ := set $ours "STANDALONE_HEALTH_CHECKS" (toString $root.Values.checker.enabled) }}
{{- if $root.Values.checker.enabled }}
{{- $_ := set $ours "HEALTH_CHECKER_SERVICE_URL" (printf "http://%s-checker:8080" (include "headgate.name" $root)) }}
{{- end }}
{{- if $root.Values.clients.existingSecret }}
{{- $_ := set $ours "CLIENTS_FILE" "/etc/headgate-clients/clients.json" }}
{{- end }}
{{- if $root.Values.valkey.enabled }}
{{- $_ := set $ours "VALKEY_HOST" (printf "%s-valkey" (include "headgate.name" $root)) }}
{{- $_ := set $ours "VALKEY_PORT" "6379" }}
{{- else if $root.Values.externalValkey.host }}
{{- $_ := set $ours "VALKEY_HOST" $root.Values.externalValkey.host }}
{{- $_ := set $ours "VALKEY_PORT" (toString $root.Values.externalValkey.port) }}
{{- $_ := set $ours "VALKEY_USE_TLS" (toString $root.Values.externalValkey.tls) }}
{{- if $root.Values.externalValkey.username }}{{ $_ := set $ours "VALKEY_USERNAME" $root.Values.externalValkey.username }}{{ end }}
{{- end }}
{{- $settings := merge (deepCopy $root.Values.settings) .own $ours }}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ toString $value | quote }}
{{- end }}
{{- $secret := include "headgate.valkeySecret" $root }}
{{- if and $secret (not $root.Values.valkey.enabled) $root.Values.externalValkey.urlKey }}
- name: VALKEY_URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $root.Values.externalValkey.urlKey }}}}
{{- else if $secret }}
- name: VALKEY_PASS
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: password}}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "headgate.envFrom" -}}
{{- $keys := include "headgate.keysSecret" . }}
{{- if or $keys .Values.extraEnvFrom }}
envFrom:
  {{- if $keys }}
  - secretRef: {name: {{ $keys }}}
  {{- end }}
  {{- with .Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A folder, not a file: only folders follow a change of the ConfigMap. */}}
{{- define "headgate.mounts" -}}
- name: endpoints
  mountPath: /etc/headgate
  readOnly: true
{{- if .Values.clients.existingSecret }}
- name: clients
  mountPath: /etc/headgate-clients
  readOnly: true
{{- end }}
{{- end }}

{{- define "headgate.volumes" -}}
- name: endpoints
  configMap: {name: {{ include "headgate.endpointsConfigMap" . }}}
{{- with .Values.clients.existingSecret }}
- name: clients
  secret: {secretName: {{ . }}}
{{- end }}
{{- end }}

{{/* Keys are variables, which a process reads once: a change of ours rolls the pods. */}}
{{- define "headgate.checksums" -}}
{{- if and .Values.keys.values (not .Values.keys.existingSecret) }}
checksum/keys: {{ toJson .Values.keys.values | sha256sum }}
{{- end }}
{{- end }}

{{/* Where the pods may run. Called with the values of a service. */}}
{{- define "headgate.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
