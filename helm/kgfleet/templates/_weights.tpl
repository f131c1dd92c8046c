{{/* Weights that are fetched once, without GPUs, into a volume that all servers share. */}}

{{- define "kgfleet.weights.claim" -}}
{{ .Values.sharedPvcStorage.existingClaim | default (printf "%s-weights" (include "kgfleet.fullname" .)) }}
{{- end -}}

{{/* Where a model's weights are, as `ID@REVISION`. Takes the pool. */}}
{{- define "kgfleet.weights.id" -}}
{{ .modelURL }}@{{ .modelRevision | default "main" }}
{{- end -}}

{{/* The file that says that a model's weights are complete. Takes the pool. */}}
{{- define "kgfleet.weights.marker" -}}
/weights/fetched/{{ include "kgfleet.weights.id" . | replace "/" "--" }}
{{- end -}}

{{/* The pools whose weights are fetched, each model once, the largest first, as JSON. */}}
{{- define "kgfleet.weights.list" -}}
{{- $sized := dict -}}
{{- range include "kgfleet.pools" . | fromJsonArray -}}
{{- if eq .weightsFrom "fetched" -}}
{{- $_ := set $sized (printf "%06d %s" (sub 999999 (int .weightsGi)) (include "kgfleet.weights.id" .)) . -}}
{{- end -}}
{{- end -}}
{{- $list := list -}}
{{- range keys $sized | sortAlpha -}}{{- $list = append $list (get $sized .) -}}{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{/* A Job cannot be changed: other models are another Job, which finds there what was fetched before. */}}
{{- define "kgfleet.weights.job" -}}
{{- $ids := list (include "kgfleet.vllm.image" .Values.servingEngineSpec.modelDefaults) -}}
{{- range include "kgfleet.weights.list" . | fromJsonArray -}}{{- $ids = append $ids (include "kgfleet.weights.id" .) -}}{{- end -}}
{{ include "kgfleet.fullname" . }}-weights-{{ $ids | toJson | sha256sum | trunc 8 }}
{{- end -}}

{{/* `JOB/INDEX`: which part of which Job fetches the weights of a pool. Takes the root and the pool. */}}
{{- define "kgfleet.weights.place" -}}
{{- $id := include "kgfleet.weights.id" .pool -}}
{{- $job := include "kgfleet.weights.job" .root -}}
{{- range $index, $each := include "kgfleet.weights.list" .root | fromJsonArray -}}
{{- if eq (include "kgfleet.weights.id" $each) $id -}}{{ $job }}/{{ $index }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Holds a server back until its weights are complete. Takes the root and the pool. */}}
{{- define "kgfleet.weights.wait" -}}
- name: weights
  image: {{ include "kgfleet.vllm.image" .pool }}
  imagePullPolicy: {{ .pool.imagePullPolicy }}
  command: [/bin/sh, -c]
  args:
    - 'i=0; until [ -e "$0" ]; do [ $i -lt {{ mul (int .pool.loadMinutes) 12 }} ] || { echo "no $0: Job {{ include "kgfleet.weights.job" .root }} has not fetched the weights" >&2; exit 1; }; i=$((i + 1)); sleep 5; done'
    - {{ include "kgfleet.weights.marker" .pool | quote }}
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    requests: {cpu: 10m, memory: 32Mi, ephemeral-storage: 1Mi}
    limits: {cpu: 100m, memory: 64Mi, ephemeral-storage: 16Mi}
  securityContext:
    {{- mergeOverwrite (include "kgfleet.containerSecurity" .root | fromYaml) .pool.containerSecurityContext | toYaml | nindent 4 }}
  volumeMounts:
    - {name: weights, mountPath: /weights, readOnly: true}
{{- end -}}
