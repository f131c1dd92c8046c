{{/* Values that the schema allows one by one and that do not fit together. Each message says what to do. */}}
{{- define "kgfleet.validate" -}}
{{- $v := .Values -}}
{{- $c := $v.coordinator -}}
{{- $mode := include "kgfleet.redis.mode" . -}}
{{- if and (eq $mode "external") (not $v.redis.url) (not $v.redis.existingSecret) -}}
{{- fail "redis.mode is `external`, and no Redis is named: give redis.url or redis.existingSecret, or set redis.mode to `own` (a small Redis in this release) or `none` (one coordinator without Redis)" -}}
{{- end -}}
{{- if and $v.redis.url (ne $mode "external") -}}
{{- fail (printf "redis.url is given, and redis.mode is `%s`: set redis.mode to `external`, or leave out the address" $mode) -}}
{{- end -}}
{{- if contains "@" $v.redis.url -}}
{{- fail "redis.url has a password in it, and values are no place for one: put the address into a Secret and name it as redis.existingSecret" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "existing") (not $v.tls.existingSecret) -}}
{{- fail "tls.mode is `existing`: name the Secret with tls.crt, tls.key and ca.crt as tls.existingSecret" -}}
{{- end -}}
{{- if le (int $v.workerSpec.graceSeconds) (int $v.workerSpec.roundSeconds) -}}
{{- fail (printf "workerSpec.graceSeconds is %d, and a round takes up to %d s (workerSpec.roundSeconds): a drained worker could finish no round" (int $v.workerSpec.graceSeconds) (int $v.workerSpec.roundSeconds)) -}}
{{- end -}}
{{- $names := dict -}}
{{- $reserved := list "conductor" "coordinator" "data" "drain" "parts" "redis" "run" "secrets" "test" "weights" -}}
{{- $full := include "kgfleet.fullname" . -}}
{{- range include "kgfleet.pools" . | fromJsonArray -}}
{{- $where := printf "servingEngineSpec.modelSpec, pool `%s`" .name -}}
{{- if hasKey $names .name -}}{{- fail (printf "%s: two pools have this name" $where) -}}{{- end -}}
{{- if has .name $reserved -}}{{- fail (printf "%s: another part of the release has this name; choose another one" $where) -}}{{- end -}}
{{- $_ := set $names .name true -}}
{{- $gpus := mul (int .vllmConfig.tensorParallelSize) (int .vllmConfig.pipelineParallelSize) -}}
{{- $have := mul (int .requestGPU) (int .multiNodeSize) -}}
{{- if ne (int $gpus) (int $have) -}}
{{- fail (printf "%s: tensorParallelSize x pipelineParallelSize is %d, and requestGPU x multiNodeSize is %d; vLLM needs as many GPUs as parts" $where (int $gpus) (int $have)) -}}
{{- end -}}
{{- if not .standing -}}
{{- if gt (len (printf "%s-%s" $full .name)) 52 -}}
{{- fail (printf "%s: `%s-%s` is longer than the 52 characters that Kubernetes allows for a CronJob; shorten fullnameOverride or the pool's name" $where $full .name) -}}
{{- end -}}
{{- end -}}
{{- if and .standing (gt (int .multiNodeSize) 1) -}}
{{- fail (printf "%s: a server over %d nodes cannot stand: no Deployment takes all of its pods when one is gone; set standing to false" $where (int .multiNodeSize)) -}}
{{- end -}}
{{- if and (eq .weightsFrom "fetched") (gt (int .multiNodeSize) 1) (not $v.sharedPvcStorage.existingClaim) (not (has "ReadWriteMany" $v.sharedPvcStorage.accessModes)) -}}
{{- fail (printf "%s: a server over %d nodes reads one volume, and sharedPvcStorage.accessModes lacks ReadWriteMany" $where (int .multiNodeSize)) -}}
{{- end -}}
{{- if and (gt (int .gpusPerNode) 0) (gt (int (mul (int .requestGPU) (int .workersPerNode))) (int .gpusPerNode)) -}}
{{- fail (printf "%s: %d pods with %d GPUs each do not fit on a node with %d; lower workersPerNode or requestGPU, or spread a server over nodes with multiNodeSize" $where (int .workersPerNode) (int .requestGPU) (int .gpusPerNode)) -}}
{{- end -}}
{{- if and (gt (int .multiNodeSize) 1) (ne .kind "vllm") -}}
{{- fail (printf "%s: multiNodeSize is for chat models" $where) -}}
{{- end -}}
{{- end -}}
{{- range include "kgfleet.apiPools" . | fromJsonArray -}}
{{- if hasKey $names .name -}}{{- fail (printf "apiPools: two pools have the name `%s`" .name) -}}{{- end -}}
{{- if has .name $reserved -}}{{- fail (printf "apiPools, pool `%s`: another part of the release has this name; choose another one" .name) -}}{{- end -}}
{{- $_ := set $names .name true -}}
{{- if not .connectors -}}
{{- fail (printf "apiPools, pool `%s`: connectors is empty; name anthropic, gemini or openai-compatible" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
