{{/* Name of a pool's objects. Takes the root and the pool. */}}
{{- define "kgfleet.pool.name" -}}
{{ include "kgfleet.fullname" .root }}-{{ .pool.name }}
{{- end -}}

{{- define "kgfleet.pool.labels" -}}
{{ include "kgfleet.labels" (dict "root" .root "component" "worker") }}
kgfleet/pool: {{ .pool.name | quote }}
{{- end -}}

{{- define "kgfleet.pool.selectorLabels" -}}
{{ include "kgfleet.selectorLabels" (dict "root" .root "component" "worker") }}
kgfleet/pool: {{ .pool.name | quote }}
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
    - --metrics
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
  ports:
    - {name: metrics, containerPort: 7702}
  # What it says at its end is seen in the pod's state.
  terminationMessagePolicy: FallbackToLogsOnError
  {{- if and (eq (.pool.standing | toString) "false") (semverCompare ">=1.35-0" .root.Capabilities.KubeVersion.Version) }}
  # A worker that crashes is started again beside its loaded server.
  restartPolicy: Never
  restartPolicyRules:
    - {action: Restart, exitCodes: {operator: NotIn, values: [0, 2, 3]}}
  {{- end }}
  startupProbe:
    httpGet: {path: /healthz, port: metrics}
    periodSeconds: 2
    failureThreshold: 60
  livenessProbe:
    httpGet: {path: /healthz, port: metrics}
    periodSeconds: 10
    timeoutSeconds: 5
  # Ready is who has registered, whether or not the server beside it has loaded.
  readinessProbe:
    httpGet: {path: /readyz, port: metrics}
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

{{/* What is there while a release is uninstalled. Takes the weight. */}}
{{- define "kgfleet.drain.hook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- define "kgfleet.worker.volumes" -}}
- {name: work, emptyDir: {sizeLimit: {{ .root.Values.workerSpec.workDirSize }}}}
- {name: tmp, emptyDir: {sizeLimit: 1Gi}}
{{ include "kgfleet.client.volumes" (dict "root" .root "token" "worker.token") }}
{{- end -}}

{{/* Metadata of the pods of a model pool. */}}
{{- define "kgfleet.model.podMetadata" -}}
labels:
  {{- include "kgfleet.pool.labels" . | nindent 2 }}
  kgfleet/kind: {{ .pool.kind }}
  {{- if gt (int .pool.multiNodeSize) 1 }}
  kgfleet/spans-nodes: "true"
  {{- end }}
  {{- if .pool.standing }}
  {{- include "kgfleet.kueue.labels" .root | nindent 2 }}
  {{- end }}
  {{- with .pool.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := dict -}}
{{- if not .pool.standing -}}
{{- /* What is loaded for half an hour is not moved to save a node. */ -}}
{{- $annotations = dict "cluster-autoscaler.kubernetes.io/safe-to-evict" "false" "karpenter.sh/do-not-disrupt" "true" -}}
{{- with .root.Values.kueue.topology -}}
{{- if eq . "unconstrained" -}}
{{- $_ := set $annotations "kueue.x-k8s.io/podset-unconstrained-topology" "true" -}}
{{- else if gt (int $.pool.multiNodeSize) 1 -}}
{{- $_ := set $annotations "kueue.x-k8s.io/podset-required-topology" . -}}
{{- else -}}
{{- $_ := set $annotations "kueue.x-k8s.io/podset-unconstrained-topology" "true" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $annotations = mergeOverwrite $annotations .pool.podAnnotations }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kgfleet.kueue.labels" -}}
{{- with .Values.kueue.queueName }}
kueue.x-k8s.io/queue-name: {{ . }}
{{- end }}
{{- with .Values.kueue.priorityClass }}
kueue.x-k8s.io/priority-class: {{ . }}
{{- end }}
{{- end -}}

{{/* What a worker is told of its server, and when it ends. */}}
{{- define "kgfleet.model.workerArgs" -}}
{{- $args := list "--endpoint" "http://127.0.0.1:8000/v1" "--model" .pool.servedModelName -}}
{{- $args = concat $args (list "--server-image" (include "kgfleet.vllm.image" .pool)) -}}
{{- with .pool.modelRevision -}}{{- $args = concat $args (list "--model-revision" .) -}}{{- end -}}
{{- if not .pool.standing -}}
{{- $idle := .root.Values.workerSpec.idleAfter -}}
{{- if gt (int .pool.multiNodeSize) 1 -}}
{{- $args = concat $args (list "--rank-from" "JOB_COMPLETION_INDEX" "--parts" (toString .pool.multiNodeSize)) -}}
{{- /* Parts that are silent for long may give each other up; so far nobody has tried longer. */ -}}
{{- if eq (toString $idle) "auto" -}}{{- $idle = "1200" -}}{{- end -}}
{{- end -}}
{{- /* A Job that ended because there is no work now is complete: another one comes when there is. */ -}}
{{- $args = concat $args (list "--until-done" "--leave-surplus" "--later-code" "0" "--idle-after" (toString $idle)) -}}
{{- $args = concat $args (list "--server-wait" (toString (mul (int .pool.loadMinutes) 60))) -}}
{{- end -}}
{{- toJson $args -}}
{{- end -}}

{{/* Affinity of a pool's pods: its own, or beside other servers, so that nodes stay free for those that need all of one. */}}
{{- define "kgfleet.model.affinity" -}}
{{- $affinity := deepCopy .pool.affinity -}}
{{- with .pool.nodeSelectorTerms -}}
{{- $affinity = mergeOverwrite (dict "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" .))) $affinity -}}
{{- end -}}
{{- if and (not .pool.standing) (not .pool.affinity) -}}
{{- $servers := dict "labelSelector" (dict "matchLabels" (include "kgfleet.selectorLabels" (dict "root" .root "component" "worker") | fromYaml)) "topologyKey" "kubernetes.io/hostname" -}}
{{- $_ := set $affinity "podAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $servers))) -}}
{{- end -}}
{{- toJson $affinity -}}
{{- end -}}

{{/* A pod with a vLLM server, or a part of one, and its worker. */}}
{{- define "kgfleet.model.podSpec" -}}
{{- $start := include "kgfleet.podStart" .root | fromYaml -}}
{{- $_ := set $start "securityContext" (mergeOverwrite $start.securityContext .pool.securityContext) -}}
{{- toYaml $start }}
{{- if not .pool.standing }}
restartPolicy: Never
{{- end }}
terminationGracePeriodSeconds: {{ include "kgfleet.worker.termination" . }}
{{- with .pool.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .pool.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- with .pool.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- if gt (int .pool.multiNodeSize) 1 }}
subdomain: {{ include "kgfleet.parts" .root }}
{{- end }}
initContainers:
  {{- with .pool.initContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if eq .pool.weightsFrom "fetched" }}
  {{- include "kgfleet.weights.wait" . | nindent 2 }}
  {{- end }}
  {{- include "kgfleet.vllm.container" . | nindent 2 }}
containers:
  {{- $args := include "kgfleet.model.workerArgs" . | fromJsonArray }}
  {{- include "kgfleet.worker.container" (dict "root" .root "pool" .pool "args" $args) | nindent 2 }}
volumes:
  {{- include "kgfleet.worker.volumes" . | nindent 2 }}
  {{- include "kgfleet.vllm.volumes" . | nindent 2 }}
{{- $placed := set (deepCopy .pool) "affinity" (include "kgfleet.model.affinity" . | fromJson) }}
{{- include "kgfleet.placement" $placed }}
{{- if .pool.standing }}
topologySpreadConstraints:
  # Every node gets as many of the pods as the others.
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kgfleet.pool.selectorLabels" . | nindent 8 }}
{{- end }}
{{- end -}}
