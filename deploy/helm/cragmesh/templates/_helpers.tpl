{{/* All of these take (dict "root" $ "name" NAME "s" SERVICE), a service as in values.yaml. */}}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/component: {{ .s.component | default "job" }}
app.kubernetes.io/part-of: cragmesh
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "metadata" -}}
metadata:
  name: {{ .name }}
  labels: {{- include "labels" . | nindent 4 }}
{{- end }}

{{- define "image" -}}
{{- $image := .s.image | default .name }}
{{- $of := .root.Values.image }}
{{- $at := index $of.digests $image }}
{{- with $of.registry }}{{ . }}/{{ end }}cragmesh/{{ $image }}
{{- if $at }}@{{ $at }}{{ else }}:{{ $of.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Takes (dict "at" SECRET/KEY), and "needed" where no pod starts without it. */}}
{{- define "secret" -}}
{{- $parts := splitn "/" 2 .at -}}
valueFrom:
  secretKeyRef: {name: {{ $parts._0 }}, key: {{ $parts._1 }}, optional: {{ not .needed }}}
{{- end }}

{{/* What every pod has in common: no rights, no token. */}}
{{- define "pod" -}}
{{- if .root.Values.serviceAccounts.create }}
serviceAccountName: {{ .name }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- if index (.s.resources.limits | default dict) "nvidia.com/gpu" | int }}
{{- with .root.Values.gpu }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Those that stay also keep apart, and end what is in flight. */}}
{{- define "lasting" -}}
{{ include "pod" . }}
# preStop, then CRAGMESH_GRACEFUL_SHUTDOWN_S for the longest request, and some for the model to let go.
terminationGracePeriodSeconds: 45
{{- with .root.Values.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - {{ toYaml . | nindent 4 | trim }}
    labelSelector:
      matchLabels: {{- include "selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "rights" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Until every proxy has heard that this pod takes no more: SIGTERM sooner would refuse requests. */}}
{{- define "lifecycle" -}}
lifecycle:
  preStop:
    sleep: {seconds: 5}
{{- end }}

{{/* Not empty where an autoscaler says how many there are. */}}
{{- define "scaled" -}}
{{- $by := .root.Values.autoscaling.by }}
{{- if and .s.autoscale (or (eq $by "keda") (and (eq $by "hpa") .s.autoscale.inFlight)) }}true{{ end }}
{{- end }}

{{/* How many there are where none does. */}}
{{- define "replicas" -}}
{{ .s.replicas | default (dig "min" 1 (.s.autoscale | default dict)) }}
{{- end }}

{{- define "env" -}}
{{- $needs := .s.needs | default list }}
{{- range $name, $value := .s.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- range $name, $secret := .s.secrets }}
- name: {{ $name }}
  {{- include "secret" (dict "at" $secret "needed" (has $name $needs)) | nindent 2 }}
{{- end }}
{{- end }}

{{/* A container's environment, bounds and mounts. */}}
{{- define "container" -}}
image: {{ include "image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with include "env" . }}
env: {{- . | nindent 2 }}
{{- end }}
resources: {{- toYaml .s.resources | nindent 2 }}
{{ include "rights" . }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- with .s.mounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* `tmp`, and a volume for every name that is mounted. */}}
{{- define "volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .s.tmp | default "1Gi" }}}
{{- $names := list }}
{{- range .s.mounts }}{{ $names = append $names .name }}{{ end }}
{{- range $names | uniq }}
- name: {{ . }}
  {{- include "volume" (dict "root" $.root "s" $.s "volume" .) | nindent 2 }}
{{- end }}
{{- end }}

{{- define "volume" -}}
{{- $v := .root.Values }}
{{- if eq .volume "models" }}
{{- if eq $v.models.from "claim" -}}
persistentVolumeClaim: {claimName: {{ $v.models.claim.name }}}
{{- else if eq $v.models.from "image" -}}
image: {{- toYaml $v.models.image | nindent 2 }}
{{- else -}}
emptyDir: {sizeLimit: 1Mi}
{{- end }}
{{- else if eq .volume "confidence" }}
{{- if eq $v.confidence.from "claim" -}}
persistentVolumeClaim: {claimName: confidence}
{{- else -}}
configMap: {name: cragmesh-confidence, optional: true}
{{- end }}
{{- else if eq .volume "keys" -}}
# As a folder and not by subPath, so that a rotated key arrives without a restart.
secret: {secretName: cragmesh-keys, optional: true}
{{- else if eq .volume "shm" -}}
emptyDir: {medium: Memory, sizeLimit: {{ .s.shm }}}
{{- else if .s.claim -}}
persistentVolumeClaim: {claimName: {{ .s.claim.name }}}
{{- else -}}
emptyDir: {sizeLimit: 2Gi}
{{- end }}
{{- end }}

{{- define "claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
{{ include "metadata" . }}
spec:
  accessModes: [{{ .mode }}]
  {{- with .claim.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests: {storage: {{ .claim.size }}}
{{- end }}

{{- define "httpProbe" -}}
httpGet: {path: {{ .path }}, port: http}
periodSeconds: {{ .period }}
timeoutSeconds: {{ .timeout }}
failureThreshold: {{ .failures }}
{{- end }}

{{/* Startup, readiness, liveness of `.paths`. */}}
{{- define "probes" -}}
# Loading a model: a service listens when it is done.
startupProbe:
  {{- include "httpProbe" (dict "path" (index .paths 0) "period" 5 "timeout" 5 "failures" (div .startS 5)) | nindent 2 }}
readinessProbe:
  {{- include "httpProbe" (dict "path" (index .paths 1) "period" 5 "timeout" (.readyTimeoutS | default 5) "failures" 3) | nindent 2 }}
# Busy is not dead: only a loop that has stood still for two minutes is restarted.
livenessProbe:
  {{- include "httpProbe" (dict "path" (index .paths 2) "period" 20 "timeout" (.aliveTimeoutS | default 10) "failures" 6) | nindent 2 }}
{{- end }}

{{/* Takes the root; not empty where collections are backed up. */}}
{{- define "backs up" -}}
{{- with .Values.qdrant }}{{ if and .backup.enabled (or .enabled .cluster) }}true{{ end }}{{ end }}
{{- end }}
