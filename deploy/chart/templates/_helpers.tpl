{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "berth.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Settings that all pods share. The address of a pod is known when it starts. */}}
{{- define "berth.env" -}}
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
# One process in each pod: the ports and the draining are those of one host.
- { name: BERTH_PROCESSES, value: '1' }
- { name: BERTH_PEER_URL, value: 'http://$(POD_IP):8080' }
- { name: BERTH_PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
- { name: BERTH_S3_BUCKET, value: {{ .Values.s3.bucket | quote }} }
- { name: BERTH_S3_REGION, value: {{ .Values.s3.region | quote }} }
{{- with .Values.s3.endpoint }}
- { name: BERTH_S3_ENDPOINT, value: {{ . | quote }} }
{{- end }}
{{- with .Values.trustedProxies }}
- { name: BERTH_TRUSTED_PROXIES, value: {{ join "," . | quote }} }
{{- end }}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "berth.container" -}}
image: {{ include "berth.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef: { name: {{ .Values.existingSecret | quote }} }
ports:
  - { name: http, containerPort: 8080 }
  - { name: operator, containerPort: 9464 }
# A server needs a minute for its first migration.
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  # The init process of the image restarts a server that ends; a new container would end its sessions.
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 30
readinessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 2
{{- end }}
