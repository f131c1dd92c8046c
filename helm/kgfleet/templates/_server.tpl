{{/* The vLLM server of a pool: its image, options, environment, sizes and volumes. */}}

{{- define "kgfleet.vllm.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end -}}
{{- end -}}

{{/* Options of `vllm serve`. */}}
{{- define "kgfleet.vllm.args" -}}
{{- $config := .pool.vllmConfig -}}
- {{ ternary "/weights/model" .pool.modelURL (eq .pool.weightsFrom "image") | quote }}
- --host
- 0.0.0.0
- --port
- "8000"
- --served-model-name
- {{ .pool.servedModelName | quote }}
{{- if and .pool.modelRevision (ne .pool.weightsFrom "image") }}
- --revision
- {{ .pool.modelRevision | quote }}
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
{{- if gt (int .pool.multiNodeSize) 1 }}
- --nnodes
- {{ .pool.multiNodeSize | quote }}
- --node-rank
- $(JOB_COMPLETION_INDEX)
- --master-addr
- $(KGFLEET_JOB)-0.{{ include "kgfleet.parts" .root }}
{{- end }}
{{- end -}}

{{- define "kgfleet.vllm.env" -}}
- {name: HOME, value: /cache}
- {name: USER, value: kgfleet}
- {name: HF_HOME, value: /weights/huggingface}
- {name: VLLM_CACHE_ROOT, value: /cache/vllm}
- {name: TORCHINDUCTOR_CACHE_DIR, value: /cache/torchinductor}
- {name: TRITON_CACHE_DIR, value: /cache/triton}
- {name: VLLM_NO_USAGE_STATS, value: "1"}
{{- if eq .pool.weightsFrom "fetched" }}
- {name: HF_HUB_OFFLINE, value: "1"}
{{- end }}
{{- if gt (int .pool.multiNodeSize) 1 }}
- name: KGFLEET_JOB
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
{{- end }}
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

{{/* What the server takes. Without a limit of CPU a loading server is not throttled; a node without room for the weights is not chosen. */}}
{{- define "kgfleet.vllm.resources" -}}
{{- if .pool.resources -}}
{{- toYaml .pool.resources }}
{{- else -}}
requests:
  cpu: {{ .pool.requestCPU | quote }}
  memory: {{ .pool.requestMemory }}
  ephemeral-storage: {{ .pool.diskRequest }}
  {{ .pool.requestGPUType }}: {{ .pool.requestGPU }}
limits:
  {{- with .pool.limitCPU }}
  cpu: {{ . | quote }}
  {{- end }}
  memory: {{ .pool.limitMemory }}
  ephemeral-storage: {{ .pool.diskLimit }}
  {{ .pool.requestGPUType }}: {{ .pool.requestGPU }}
{{- end -}}
{{- end -}}

{{/* The container of the server: a native sidecar, which ends after the worker has ended, in a Job too. */}}
{{- define "kgfleet.vllm.container" -}}
- name: vllm
  image: {{ include "kgfleet.vllm.image" .pool }}
  imagePullPolicy: {{ .pool.imagePullPolicy }}
  restartPolicy: Always
  # Its last lines are why it ended.
  terminationMessagePolicy: FallbackToLogsOnError
  {{- if gt (int .pool.multiNodeSize) 1 }}
  command: [/bin/sh, -c]
  args:
    # All parts but the first have no API of their own.
    - '[ "$JOB_COMPLETION_INDEX" = 0 ] || set -- "$@" --headless; exec vllm serve "$@"'
    - vllm
  {{- else }}
  command: [vllm, serve]
  args:
  {{- end }}
    {{- include "kgfleet.vllm.args" . | nindent 4 }}
  env:
    {{- include "kgfleet.vllm.env" . | nindent 4 }}
  {{- with .pool.envFromSecret }}
  envFrom:
    - secretRef: {name: {{ . }}}
  {{- end }}
  ports:
    - {name: vllm, containerPort: 8000}
  {{- if .pool.standing }}
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
  {{- else if eq (int .pool.multiNodeSize) 1 }}
  # The worker beside it waits for the server and judges it; this is for one that hangs after it has loaded.
  livenessProbe:
    httpGet: {path: /health, port: vllm}
    initialDelaySeconds: {{ mul (int .pool.loadMinutes) 60 }}
    periodSeconds: 30
    timeoutSeconds: 10
    failureThreshold: 10
  {{- end }}
  resources:
    {{- include "kgfleet.vllm.resources" . | nindent 4 }}
  securityContext:
    {{- mergeOverwrite (include "kgfleet.containerSecurity" .root | fromYaml) .pool.containerSecurityContext | toYaml | nindent 4 }}
  volumeMounts:
    - {name: cache, mountPath: /cache}
    - {name: weights, mountPath: {{ ternary "/weights/model" "/weights" (eq .pool.weightsFrom "image") }}{{ if eq .pool.weightsFrom "image" }}, readOnly: true{{ end }}}
    - {name: shm, mountPath: /dev/shm}
    - {name: tmp, mountPath: /tmp}
    {{- with .pool.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "kgfleet.vllm.volumes" -}}
- name: weights
  {{- if eq .pool.weightsFrom "image" }}
  image: {reference: {{ .pool.weightsImage | quote }}, pullPolicy: IfNotPresent}
  {{- else if eq .pool.weightsFrom "fetched" }}
  persistentVolumeClaim: {claimName: {{ include "kgfleet.weights.claim" .root }}}
  {{- else if eq .pool.weightsFrom "claim" }}
  persistentVolumeClaim: {claimName: {{ .pool.cache.existingClaim }}}
  {{- else if eq .pool.weightsFrom "node" }}
  hostPath: {path: {{ .root.Values.weights.hostPath | quote }}, type: DirectoryOrCreate}
  {{- else }}
  emptyDir: {sizeLimit: {{ .pool.disk }}}
  {{- end }}
- {name: cache, emptyDir: {sizeLimit: {{ .pool.disk }}}}
- {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ .pool.shmSize }}}}
{{- with .pool.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
