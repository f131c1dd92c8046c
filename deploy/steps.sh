# shellcheck shell=bash disable=SC2154
# Runs named steps whatever became of those before, and says at the end what was done, what failed and what could not be tried.
# Sourced by deploy/release and deploy/release-check, which define `steps`, a function for each of them and `hindrance`.

# run_steps TITLE STEP...: without steps, all. Fails if one of them did.
run_steps() {
  local title=$1 step why begun failed=0 report=()
  shift
  [ $# -gt 0 ] || set -- "${steps[@]}"
  for step; do
    case " ${steps[*]} " in
      *" $step "*) ;;
      *)
        echo "$title: there is no step $step; steps are: ${steps[*]}" >&2
        exit 2
        ;;
    esac
  done

  for step; do
    printf '\n== %s ==\n' "$step"
    why=$(hindrance "$step")
    if [ -n "$why" ]; then
      echo "skipped: $why"
      report+=("$(printf '%-10s %-7s %s' "$step" skipped "$why")")
      continue
    fi
    begun=$(date +%s)
    if "$step"; then
      report+=("$(printf '%-10s %-7s %s' "$step" "done" "$(($(date +%s) - begun)) s")")
    else
      report+=("$(printf '%-10s %-7s %s' "$step" FAILED "after $(($(date +%s) - begun)) s; see above")")
      failed=1
    fi
  done
  for step in "${steps[@]}"; do
    case " $* " in
      *" $step "*) ;;
      *) report+=("$(printf '%-10s %-7s %s' "$step" skipped "was not asked for")") ;;
    esac
  done

  # What is committed is released; anything else is only tried.
  printf '\n== %s of %s ==\n' "$title" "$(git describe --always --dirty 2>/dev/null || echo unknown)"
  printf '%s\n' "${report[@]}"
  return "$failed"
}
