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

{{- define "kgfleet.secrets.args" -}}
{{- $args := list "fleet" "secrets" "--prefix" (include "kgfleet.fullname" .) -}}
{{- if eq .Values.tls.mode "generate" -}}
{{- $host := include "kgfleet.coordinator.host" . -}}
{{- $names := concat (list $host (printf "%s.cluster.local" $host) (printf "%s-coordinator" (include "kgfleet.fullname" .)) "localhost" "127.0.0.1") .Values.tls.dnsNames .Values.tls.ipAddresses -}}
{{- range $names -}}{{- $args = concat $args (list "--tls-name" .) -}}{{- end -}}
{{- end -}}
{{- if not .Values.auth.existingSecret -}}{{- $args = append $args "--auth" -}}{{- end -}}
{{- if and (include "kgfleet.conducts" .) (not .Values.conductor.existingSecret) -}}{{- $args = append $args "--conductor" -}}{{- end -}}
{{- if and (eq (include "kgfleet.redis.mode" .) "own") (not .Values.redis.existingSecret) -}}
{{- $args = concat $args (list "--redis" (printf "%s-redis.%s.svc" (include "kgfleet.fullname" .) .Release.Namespace)) -}}
{{- end -}}
{{- toJson $args -}}
{{- end -}}

{{/* A service account that may see and change the Secrets of the release alone. Takes the root and the names of the Secrets. */}}
{{- define "kgfleet.secrets.account" }}
{{- $this := dict "root" .root "component" "secrets" }}
{{- $name := printf "%s-secrets" (include "kgfleet.fullname" .root) }}
{{- range $kind := list "ServiceAccount" "Role" "RoleBinding" }}
---
apiVersion: {{ ternary "v1" "rbac.authorization.k8s.io/v1" (eq $kind "ServiceAccount") }}
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  namespace: {{ $.root.Release.Namespace | quote }}
  labels:
    {{- include "kgfleet.labels" $this | nindent 4 }}
  annotations:
    {{- include "kgfleet.secrets.hook" "-10" | nindent 4 }}
{{- if eq $kind "ServiceAccount" }}
automountServiceAccountToken: false
{{- else if eq $kind "Role" }}
rules:
  - {apiGroups: [""], resources: [secrets], resourceNames: {{ toJson $.names }}, verbs: [get, update]}
  # Kubernetes cannot limit by name what is made.
  - {apiGroups: [""], resources: [secrets], verbs: [create]}
{{- else }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $name }}, namespace: {{ $.root.Release.Namespace | quote }}}
{{- end }}
{{- end }}
{{- end }}
