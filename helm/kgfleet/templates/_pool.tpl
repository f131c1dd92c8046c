{{/* Name of a pool's objects. Takes the root and the pool. */}}
{{- define "kgfleet.pool.name" -}}
{{ include "kgfleet.fullname" .root }}-{{ .pool.name }}
{{- end -}}

{{- define "kgfleet.pool.labels" -}}
{{ include "kgfleet.labels" (dict "root" .root "component" "worker") }}
kgfleet/pool: {{ .pool.name }}
{{- end -}}

{{- define "kgfleet.pool.selectorLabels" -}}
{{ include "kgfleet.selectorLabels" (dict "root" .root "component" "worker") }}
kgfleet/pool: {{ .pool.name }}
{{- end -}}

{{/* The worker of a pool. Takes the root, the pool, the arguments that tell what it asks, and mounts. */}}
{{- define "kgfleet.worker.container" -}}
{{- $spec := .root.Values.workerSpec -}}
- name: worker
  image: {{ include "kgfleet.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [kgfleet]
  args:
    - worker
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
    {{- include "kgfleet.client.args" (dict "root" .root "token" "worker.token") | nindent 4 }}
    - --work-dir
    - /work
    - --http
    - 0.0.0.0:7702
    - --concurrency
    - {{ $spec.concurrency | quote }}
    - --grace
    - {{ include "kgfleet.worker.grace" . | quote }}
    {{- range $spec.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  env:
    # A pod's name is unique in the fleet.
    - name: KGFLEET_WORKER
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - {name: KGFLEET_POOL, value: {{ .pool.name | quote }}}
    - name: KGFLEET_NODE
      valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
    {{- with .pool.requestGPU }}
    - {name: KGFLEET_GPUS, value: {{ mul (int .) (int ($.pool.multiNodeSize | default 1)) | quote }}}
    {{- end }}
    {{- with .root.Values.monitoring.otlpEndpoint }}
    - {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
    {{- end }}
  ports:
    - {name: http, containerPort: 7702}
  startupProbe:
    httpGet: {path: /healthz, port: http}
    periodSeconds: 2
    failureThreshold: 60
  livenessProbe:
    httpGet: {path: /healthz, port: http}
    periodSeconds: 10
    timeoutSeconds: 5
  readinessProbe:
    httpGet: {path: /readyz, port: http}
    periodSeconds: 5
    timeoutSeconds: 5
  resources:
    {{- toYaml $spec.resources | nindent 4 }}
  securityContext:
    {{- include "kgfleet.containerSecurity" .root | nindent 4 }}
  volumeMounts:
    - {name: work, mountPath: /work}
    - {name: tmp, mountPath: /tmp}
    {{- include "kgfleet.client.mounts" .root | nindent 4 }}
    {{- with .mounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "kgfleet.worker.grace" -}}
{{- ternary (int .root.Values.workerSpec.spotGraceSeconds) (int .root.Values.workerSpec.graceSeconds) (default false .pool.spot) -}}
{{- end -}}

{{/* The worker may use up its grace, deliver what it has, and then the server beside it ends. */}}
{{- define "kgfleet.worker.termination" -}}
{{- $grace := int (include "kgfleet.worker.grace" .) -}}
{{- add $grace (ternary 10 45 (default false .pool.spot)) -}}
{{- end -}}

{{- define "kgfleet.worker.volumes" -}}
- {name: work, emptyDir: {sizeLimit: {{ .root.Values.workerSpec.workDirSize }}}}
- {name: tmp, emptyDir: {sizeLimit: 1Gi}}
{{ include "kgfleet.client.volumes" (dict "root" .root "token" "worker.token") }}
{{- end -}}

{{/* Options of `vllm serve` that all kinds of pools have. */}}
{{- define "kgfleet.vllm.args" -}}
{{- $config := .pool.vllmConfig -}}
- {{ .pool.modelURL | quote }}
- --host
- 0.0.0.0
- --port
- "8000"
- --served-model-name
- {{ .pool.servedModelName | quote }}
{{- with .pool.modelRevision }}
- --revision
- {{ . | quote }}
{{- end }}
- --dtype
- {{ $config.dtype }}
- --tensor-parallel-size
- {{ $config.tensorParallelSize | quote }}
{{- if gt (int $config.pipelineParallelSize) 1 }}
- --pipeline-parallel-size
- {{ $config.pipelineParallelSize | quote }}
{{- end }}
{{- if gt (int $config.maxModelLen) 0 }}
- --max-model-len
- {{ $config.maxModelLen | quote }}
{{- end }}
{{- if gt (int $config.maxNumSeqs) 0 }}
- --max-num-seqs
- {{ $config.maxNumSeqs | quote }}
{{- end }}
- --gpu-memory-utilization
- {{ $config.gpuMemoryUtilization | quote }}
{{- if eq .pool.kind "embed" }}
- --runner
- pooling
- --convert
- embed
{{- else if eq .pool.kind "classify" }}
- --runner
- pooling
- --convert
- classify
{{- end }}
{{- range $config.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "kgfleet.vllm.env" -}}
- {name: HOME, value: /cache}
- {name: USER, value: kgfleet}
- {name: HF_HOME, value: /cache/huggingface}
- {name: VLLM_CACHE_ROOT, value: /cache/vllm}
- {name: TORCHINDUCTOR_CACHE_DIR, value: /cache/torchinductor}
- {name: TRITON_CACHE_DIR, value: /cache/triton}
- {name: VLLM_NO_USAGE_STATS, value: "1"}
{{- with .pool.hfToken }}
{{- if .secretName }}
- name: HF_TOKEN
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: {{ .secretKey | default "token" }}}}
{{- end }}
{{- end }}
{{- with .pool.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kgfleet.vllm.rest" -}}
resources:
  requests:
    cpu: {{ .pool.requestCPU | quote }}
    memory: {{ .pool.requestMemory }}
    ephemeral-storage: 2Gi
    {{ .pool.requestGPUType }}: {{ .pool.requestGPU }}
  limits:
    cpu: {{ .pool.requestCPU | quote }}
    memory: {{ .pool.requestMemory }}
    ephemeral-storage: {{ ternary "8Gi" .pool.cache.size (ne .pool.cache.existingClaim "") }}
    {{ .pool.requestGPUType }}: {{ .pool.requestGPU }}
securityContext:
  {{- include "kgfleet.containerSecurity" .root | nindent 2 }}
volumeMounts:
  - {name: cache, mountPath: /cache}
  - {name: shm, mountPath: /dev/shm}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "kgfleet.vllm.probes" -}}
startupProbe:
  httpGet: {path: /health, port: vllm}
  initialDelaySeconds: 15
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: {{ mul (int .pool.loadMinutes) 6 }}
livenessProbe:
  httpGet: {path: /health, port: vllm}
  periodSeconds: 15
  timeoutSeconds: 10
  failureThreshold: 4
readinessProbe:
  httpGet: {path: /health, port: vllm}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}

{{- define "kgfleet.vllm.volumes" -}}
- name: cache
  {{- if .pool.cache.existingClaim }}
  persistentVolumeClaim: {claimName: {{ .pool.cache.existingClaim }}}
  {{- else }}
  emptyDir: {sizeLimit: {{ .pool.cache.size }}}
  {{- end }}
- {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ .pool.shmSize }}}}
{{- end -}}

{{/* Metadata of the pods of a model pool. */}}
{{- define "kgfleet.model.podMetadata" -}}
labels:
  {{- include "kgfleet.pool.labels" . | nindent 2 }}
  kgfleet/kind: {{ .pool.kind }}
  {{- with .root.Values.kueue.queueName }}
  kueue.x-k8s.io/queue-name: {{ . }}
  {{- end }}
  {{- with .root.Values.kueue.priorityClass }}
  kueue.x-k8s.io/priority-class: {{ . }}
  {{- end }}
  {{- with .pool.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .pool.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A pod with a vLLM server and its worker. With `ray`, the server is the head of a group of pods. */}}
{{- define "kgfleet.model.podSpec" -}}
{{- include "kgfleet.podStart" .root }}
terminationGracePeriodSeconds: {{ include "kgfleet.worker.termination" . }}
{{- with .pool.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
initContainers:
  # A native sidecar: it serves before the worker starts, and ends after the worker has ended.
  - name: vllm
    image: {{ .pool.repository }}:{{ .pool.tag }}
    imagePullPolicy: {{ .pool.imagePullPolicy }}
    restartPolicy: Always
    {{- if .ray }}
    command: [/bin/sh, -c]
    args:
      - ray start --head --port=6379 --disable-usage-stats && exec vllm serve "$@"
      - vllm
      {{- include "kgfleet.vllm.args" . | nindent 6 }}
      - --distributed-executor-backend
      - ray
    {{- else }}
    command: [vllm, serve]
    args:
      {{- include "kgfleet.vllm.args" . | nindent 6 }}
    {{- end }}
    env:
      {{- include "kgfleet.vllm.env" . | nindent 6 }}
    ports:
      - {name: vllm, containerPort: 8000}
    {{- include "kgfleet.vllm.probes" . | nindent 4 }}
    {{- include "kgfleet.vllm.rest" . | nindent 4 }}
containers:
  {{- $args := list "--endpoint" "http://127.0.0.1:8000/v1" "--model" .pool.servedModelName }}
  {{- include "kgfleet.worker.container" (dict "root" .root "pool" .pool "args" $args) | nindent 2 }}
volumes:
  {{- include "kgfleet.worker.volumes" . | nindent 2 }}
  {{- include "kgfleet.vllm.volumes" . | nindent 2 }}
{{- include "kgfleet.placement" .pool }}
topologySpreadConstraints:
  # Every node gets as many of the pods as the others.
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kgfleet.pool.selectorLabels" . | nindent 8 }}
{{- end -}}
