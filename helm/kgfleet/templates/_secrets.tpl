{{/* The Job that makes the release's Secrets, and its rights. */}}

{{- define "kgfleet.secrets.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The names of the Secrets that are made, as JSON. */}}
{{- define "kgfleet.secrets.names" -}}
{{- $full := include "kgfleet.fullname" . -}}
{{- $names := list -}}
{{- if not .Values.auth.existingSecret -}}{{- $names = append $names (printf "%s-auth" $full) -}}{{- end -}}
{{- if and (include "kgfleet.conducts" .) (not .Values.conductor.existingSecret) -}}{{- $names = append $names (printf "%s-conductor" $full) -}}{{- end -}}
{{- if eq .Values.tls.mode "generate" -}}{{- $names = concat $names (list (printf "%s-authority" $full) (printf "%s-tls" $full)) -}}{{- end -}}
{{- if and (eq (include "kgfleet.redis.mode" .) "own") (not .Values.redis.existingSecret) -}}{{- $names = append $names (printf "%s-queue" $full) -}}{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The Secrets that the release reads, whoever makes them, with their keys, as a JSON object. Without keys: whatever is in it is read. */}}
{{- define "kgfleet.secrets.wanted" -}}
{{- $read := list (dict "name" (include "kgfleet.auth.secret" .) "keys" (list "worker.token" "operator.token" "tokens.toml")) -}}
{{- if include "kgfleet.conducts" . -}}
{{- $read = append $read (dict "name" (include "kgfleet.conductor.secret" .) "keys" (list "conductor.token" "identities.toml")) -}}
{{- end -}}
{{- if ne .Values.tls.mode "off" -}}
{{- $read = append $read (dict "name" (include "kgfleet.tls.secret" .) "keys" (list "tls.crt" "tls.key" "ca.crt")) -}}
{{- end -}}
{{- $mode := include "kgfleet.redis.mode" . -}}
{{- if ne $mode "none" -}}
{{- $read = append $read (dict "name" (include "kgfleet.queue.secret" .) "keys" (list (ternary .Values.redis.existingSecretKey "url" (ne .Values.redis.existingSecret "")))) -}}
{{- end -}}
{{- if eq $mode "own" -}}
{{- $read = append $read (dict "name" (include "kgfleet.queue.secret" .) "keys" (list "redis.conf")) -}}
{{- end -}}
{{- with .Values.redis.tlsSecretName -}}
{{- $read = append $read (dict "name" . "keys" (ternary (list "ca.crt" "tls.crt" "tls.key") (list "ca.crt") $.Values.redis.clientCertificate)) -}}
{{- end -}}
{{- with .Values.coordinator.sinkSecretName -}}{{- $read = append $read (dict "name" . "keys" list) -}}{{- end -}}
{{- range include "kgfleet.pools" . | fromJsonArray -}}
{{- if .hfToken.secretName -}}{{- $read = append $read (dict "name" .hfToken.secretName "keys" (list (.hfToken.secretKey | default "token"))) -}}{{- end -}}
{{- with .envFromSecret -}}{{- $read = append $read (dict "name" . "keys" list) -}}{{- end -}}
{{- end -}}
{{- range include "kgfleet.apiPools" . | fromJsonArray -}}
{{- range .keys -}}{{- $read = append $read (dict "name" .secretName "keys" (list (.secretKey | default "key"))) -}}{{- end -}}
{{- end -}}
{{- $all := dict -}}
{{- range $read -}}{{- $_ := set $all .name (concat (get $all .name | default list) .keys | uniq | sortAlpha) -}}{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{- define "kgfleet.secrets.tlsArgs" -}}
{{- $host := include "kgfleet.coordinator.host" . -}}
{{- $args := list "secrets" "ensure" "--prefix" (include "kgfleet.fullname" .) "--valid-days" (toString .Values.tls.validDays) -}}
{{- $names := concat (list $host (printf "%s.cluster.local" $host) (printf "%s-coordinator" (include "kgfleet.fullname" .)) "localhost" "127.0.0.1") .Values.tls.dnsNames .Values.tls.ipAddresses -}}
{{- range $names -}}{{- $args = concat $args (list "--tls-name" .) -}}{{- end -}}
{{- toJson $args -}}
{{- end -}}

{{- define "kgfleet.secrets.args" -}}
{{- $args := list "secrets" "ensure" "--prefix" (include "kgfleet.fullname" .) -}}
{{- if eq .Values.tls.mode "generate" -}}{{- $args = include "kgfleet.secrets.tlsArgs" . | fromJsonArray -}}{{- end -}}
{{- if not .Values.auth.existingSecret -}}{{- $args = append $args "--auth" -}}{{- end -}}
{{- if and (include "kgfleet.conducts" .) (not .Values.conductor.existingSecret) -}}{{- $args = append $args "--conductor" -}}{{- end -}}
{{- if and (eq (include "kgfleet.redis.mode" .) "own") (not .Values.redis.existingSecret) -}}
{{- $args = concat $args (list "--redis" (printf "%s-redis.%s.svc" (include "kgfleet.fullname" .) .Release.Namespace)) -}}
{{- end -}}
{{- toJson $args -}}
{{- end -}}

{{/* A service account that may see and change these Secrets alone. Takes the root, its name, the names of the Secrets, whether it may make some, and the weight of a hook. */}}
{{- define "kgfleet.secrets.account" }}
{{- $this := dict "root" .root "component" "secrets" }}
{{- range $kind := list "ServiceAccount" "Role" "RoleBinding" }}
---
apiVersion: {{ ternary "v1" "rbac.authorization.k8s.io/v1" (eq $kind "ServiceAccount") }}
kind: {{ $kind }}
metadata:
  name: {{ $.name }}
  namespace: {{ $.root.Release.Namespace | quote }}
  labels:
    {{- include "kgfleet.labels" $this | nindent 4 }}
  {{- with $.hook }}
  annotations:
    {{- include "kgfleet.secrets.hook" . | nindent 4 }}
  {{- end }}
{{- if eq $kind "ServiceAccount" }}
automountServiceAccountToken: false
{{- else if eq $kind "Role" }}
rules:
  - {apiGroups: [""], resources: [secrets], resourceNames: {{ toJson $.names }}, verbs: [get, update]}
  {{- if $.creates }}
  # Kubernetes cannot limit by name what is made.
  - {apiGroups: [""], resources: [secrets], verbs: [create]}
  {{- end }}
{{- else }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $.name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $.name }}, namespace: {{ $.root.Release.Namespace | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "kgfleet.secrets.pod" -}}
{{- set (include "kgfleet.podStart" .root | fromYaml) "automountServiceAccountToken" true | toYaml }}
serviceAccountName: {{ .account }}
restartPolicy: Never
containers:
  - name: secrets
    image: {{ include "kgfleet.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [kgfleet]
    args:
      {{- range .args }}
      - {{ . | quote }}
      {{- end }}
    terminationMessagePolicy: FallbackToLogsOnError
    resources:
      requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 16Mi}
      limits: {cpu: 500m, memory: 256Mi, ephemeral-storage: 64Mi}
    securityContext:
      {{- include "kgfleet.containerSecurity" .root | nindent 6 }}
{{- end -}}
