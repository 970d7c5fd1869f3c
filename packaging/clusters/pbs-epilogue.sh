#!/bin/sh
# The epilogue of PBS (OpenPBS and TORQUE: mom_priv/epilogue, owned by root, mode 700). Arguments: 1 the job, 2 its user,
# 7 what it used, 10 its exit status, as both document. Does what slurm-epilog.sh does; PBS runs it on the first node of
# the job only. The server still takes the job for running: what it used comes from the arguments.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin:/opt/pbs/bin
export PATH
[ -n "$1" ] && [ -n "$2" ] || exit 0
GAPWATCH=${GAPWATCH:-/usr/bin/gapwatch}
[ -x "$GAPWATCH" ] || exit 0
account=$(qstat -f "$1" 2>/dev/null)
folder=$(printf '%s\n' "$account" | tr -d '\n\t' | sed -n 's/.*[=,]PBS_O_WORKDIR=\([^,]*\).*/\1/p')
[ -d "$folder" ] || exit 0
used=$(printf '%s\n' "$7" | tr , '\n' | sed -n 's/^\([a-z]*\)=/    resources_used.\1 = /p')
send=
[ "$GAPWATCH_MAIL" = yes ] && send="--mail $2"
cd / || exit 0
GAPWATCH_ACCOUNT=$(printf '%s\n%s\n    job_state = F\n    Exit_status = %s' "$account" "$used" "${10:-0}")
export GAPWATCH_ACCOUNT
# The substitution ends once the child is in a session of its own: PBS kills what is left of this one.
# shellcheck disable=SC2016,SC2086 # the inner shells fill in their own arguments; $send is none or two words
: "$(setsid -f sh -c 'exec </dev/null >/dev/null 2>&1; exec "$@"' gapwatch-epilog \
  runuser -u "$2" -- env -u LD_PRELOAD -u HOME \
  sh -c 'account=$(mktemp) && printf "%s\n" "$GAPWATCH_ACCOUNT" >"$account" && cd "$1" && job=$2 command=$3 && shift 3 &&
    timeout 300 nice -n 19 "$command" epilog --job "$job" --account "$account" --quiet -o "gapwatch-job-$job.txt" "$@"
    rm -f "$account"' \
  gapwatch-epilog "$folder" "$1" "$GAPWATCH" $send)"
exit 0
