{{/* The prefix of all names. */}}
{{- define "kgfleet.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "kgfleet.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that never change: those of selectors. Takes the root and the component. */}}
{{- define "kgfleet.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kgfleet.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "kgfleet.labels" -}}
{{ include "kgfleet.selectorLabels" . }}
app.kubernetes.io/part-of: kgfleet
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kgfleet.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "kgfleet.coordinator.host" -}}
{{ include "kgfleet.fullname" . }}-coordinator.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "kgfleet.coordinator.url" -}}
{{ ternary "http" "https" (eq .Values.tls.mode "off") }}://{{ include "kgfleet.coordinator.host" . }}:7700
{{- end -}}

{{- define "kgfleet.auth.secret" -}}
{{ .Values.auth.existingSecret | default (printf "%s-auth" (include "kgfleet.fullname" .)) }}
{{- end -}}

{{- define "kgfleet.tls.secret" -}}
{{- if eq .Values.tls.mode "existing" -}}
{{ .Values.tls.existingSecret }}
{{- else -}}
{{ include "kgfleet.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{/* A Redis that is named is used; otherwise the release has its own. */}}
{{- define "kgfleet.redis.mode" -}}
{{- $r := .Values.redis -}}
{{- ternary (ternary "external" "own" (or (ne $r.url "") (ne $r.existingSecret ""))) $r.mode (eq $r.mode "auto") -}}
{{- end -}}

{{- define "kgfleet.queue.secret" -}}
{{ .Values.redis.existingSecret | default (printf "%s-%s" (include "kgfleet.fullname" .) (ternary "queue" "address" (eq (include "kgfleet.redis.mode" .) "own"))) }}
{{- end -}}

{{/* Nobody is root, nothing is writable but mounted folders, and no rights are gained. */}}
{{- define "kgfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "kgfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What all pods begin with. */}}
{{- define "kgfleet.podStart" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "kgfleet.podSecurity" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Where the pods of a component may run. Takes the component's values. */}}
{{- define "kgfleet.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* The same for what all workers wait for, which leaves a node that is lost soon. Takes the root and the component's values. */}}
{{- define "kgfleet.placement.central" -}}
{{- $placed := deepCopy .of }}
{{- $tolerations := $placed.tolerations | default list }}
{{- range $key := list "node.kubernetes.io/not-ready" "node.kubernetes.io/unreachable" }}
{{- $own := false }}
{{- range $tolerations }}{{ if eq (.key | default "") $key }}{{ $own = true }}{{ end }}{{ end }}
{{- if not $own }}
{{- $tolerations = append $tolerations (dict "key" $key "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" (int $.root.Values.lostNodeSeconds)) }}
{{- end }}
{{- end }}
{{- include "kgfleet.placement" (set $placed "tolerations" $tolerations) }}
{{- end -}}

{{/* Options of a client of the coordinators. Takes the root and the name of its token. */}}
{{- define "kgfleet.client.args" -}}
- --fleet
- {{ include "kgfleet.coordinator.url" .root | quote }}
- --token-file
- /etc/kgfleet/auth/{{ .token }}
{{- if eq .root.Values.tls.mode "off" }}
- --insecure-token
{{- else }}
- --ca
- /etc/kgfleet/tls/ca.crt
{{- end }}
{{- end -}}

{{- define "kgfleet.client.mounts" -}}
- {name: auth, mountPath: /etc/kgfleet/auth, readOnly: true}
{{- if ne .Values.tls.mode "off" }}
- {name: ca, mountPath: /etc/kgfleet/tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "kgfleet.client.volumes" -}}
- name: auth
  secret:
    secretName: {{ .secret | default (include "kgfleet.auth.secret" .root) }}
    items: [{key: {{ .token }}, path: {{ .token }}}]
    defaultMode: 0440
{{- if ne .root.Values.tls.mode "off" }}
- name: ca
  secret:
    secretName: {{ include "kgfleet.tls.secret" .root }}
    items: [{key: ca.crt, path: ca.crt}]
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* All model pools with their defaults filled in, as JSON. */}}
{{- define "kgfleet.pools" -}}
{{- $pools := list -}}
{{- $root := . -}}
{{- range .Values.servingEngineSpec.modelSpec -}}
{{- $pool := mergeOverwrite (deepCopy $root.Values.servingEngineSpec.modelDefaults) . -}}
{{- $_ := set $pool "servedModelName" ($pool.servedModelName | default $pool.modelURL) -}}
{{- $_ := set $pool "replicas" (int ($pool.replicaCount | default (mul (int $pool.nodes) (int $pool.workersPerNode)))) -}}
{{- $_ := set $pool.vllmConfig "tensorParallelSize" (int ($pool.vllmConfig.tensorParallelSize | default $pool.requestGPU)) -}}
{{- $_ := set $pool.vllmConfig "pipelineParallelSize" (int ($pool.vllmConfig.pipelineParallelSize | default $pool.multiNodeSize)) -}}
{{- $_ := set $pool "requestCPU" ($pool.requestCPU | default (add 2 (mul 2 (int $pool.requestGPU)))) -}}
{{- $_ := set $pool "limitMemory" ($pool.limitMemory | default $pool.requestMemory) -}}
{{- $_ := set $pool "loadMinutes" ($pool.loadMinutes | default (max 30 (mul 2 (int $pool.estimate.loadMinutes)))) -}}
{{- $from := "pod" -}}
{{- if $pool.weightsImage -}}{{- $from = "image" -}}
{{- else if $pool.cache.existingClaim -}}{{- $from = "claim" -}}
{{- else if $root.Values.sharedPvcStorage.enabled -}}{{- $from = "fetched" -}}
{{- else if $root.Values.weights.hostPath -}}{{- $from = "node" -}}
{{- end -}}
{{- $_ := set $pool "weightsFrom" $from -}}
{{- /* Weights with room for what is fetched in parts, and 10 GiB for what is compiled. Where nobody says a size, little is asked of the node. */ -}}
{{- $known := gt (int $pool.weightsGi) 0 -}}
{{- $room := printf "%dGi" (int (add 10 (ceil (mulf 1.15 $pool.weightsGi)))) -}}
{{- $disk := $pool.cache.size | default (ternary $room "100Gi" $known) -}}
{{- if ne $from "pod" -}}{{- $disk = "10Gi" -}}{{- end -}}
{{- $_ := set $pool "disk" $disk -}}
{{- $_ := set $pool "diskLimit" $disk -}}
{{- $_ := set $pool "diskRequest" (ternary $disk "2Gi" (or $known (ne $from "pod") (ne $pool.cache.size ""))) -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
{{- toJson $pools -}}
{{- end -}}

{{/* What is believed of a pool's servers, for whoever decides when they start. Takes the pool. */}}
{{- define "kgfleet.pool.estimate" -}}
{{- $e := .estimate -}}
{{- $known := dict "gpus" (int .requestGPU) "parts" (int .multiNodeSize) "servers" (int .replicas) "load_seconds" (mul (int $e.loadMinutes) 60) "dialogues_per_second" (divf $e.tokensPerSecond $e.tokens) -}}
{{- if gt (int $e.dialogues) 0 -}}{{- $_ := set $known "dialogues" (int $e.dialogues) -}}{{- end -}}
{{- toJson $known -}}
{{- end -}}

{{/* Whether something starts the servers of pools that do not stand. */}}
{{- define "kgfleet.conducts" -}}
{{- if .Values.conductor.enabled -}}
{{- range include "kgfleet.pools" . | fromJsonArray -}}{{- if not .standing -}}yes{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kgfleet.conductor.secret" -}}
{{ .Values.conductor.existingSecret | default (printf "%s-conductor" (include "kgfleet.fullname" .)) }}
{{- end -}}

{{/* The Service by which the parts of servers over several nodes find each other. */}}
{{- define "kgfleet.parts" -}}
{{ include "kgfleet.fullname" . }}-parts
{{- end -}}

{{- define "kgfleet.apiPools" -}}
{{- $pools := list -}}
{{- $defaults := .Values.apiPoolDefaults -}}
{{- range .Values.apiPools -}}
{{- $pools = append $pools (mergeOverwrite (deepCopy $defaults) .) -}}
{{- end -}}
{{- toJson $pools -}}
{{- end -}}

{{/* What Prometheus calls a scraped pod. Names of pods outlive their addresses, and tell people more. */}}
{{- define "kgfleet.relabelings" -}}
- {sourceLabels: [__meta_kubernetes_pod_name], targetLabel: instance}
- {sourceLabels: [__meta_kubernetes_pod_node_name], targetLabel: node}
- {sourceLabels: [__meta_kubernetes_pod_label_kgfleet_pool], targetLabel: pool}
- {targetLabel: release, replacement: {{ .Release.Name | quote }}}
{{- end -}}

{{/* The specification of a Job that is there, which cannot be changed, without what Kubernetes has added: it would be missing in a rollback. */}}
{{- define "kgfleet.job.kept" -}}
{{- $meta := .spec.template.metadata -}}
{{- $labels := omit $meta.labels "batch.kubernetes.io/controller-uid" "batch.kubernetes.io/job-name" "controller-uid" "job-name" -}}
{{- $template := merge (dict "metadata" (set (omit $meta "creationTimestamp") "labels" $labels)) (omit .spec.template "metadata") -}}
{{- toYaml (set (omit .spec "selector") "template" $template) -}}
{{- end -}}
