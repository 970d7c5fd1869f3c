#!/bin/sh
# The epilogue of PBS (OpenPBS: a hook for execjob_epilogue may call it; TORQUE: mom_priv/epilogue). Arguments: 1 the
# job, 2 its user, as both document. Does what slurm-epilog.sh does; PBS runs it on the first node of the job only.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin:/opt/pbs/bin
export PATH
[ -n "$1" ] && [ -n "$2" ] || exit 0
GAPWATCH=${GAPWATCH:-/usr/bin/gapwatch}
[ -x "$GAPWATCH" ] || exit 0
folder=$(qstat -f "$1" 2>/dev/null | tr -d '\n\t' | sed -n 's/.*[=,]PBS_O_WORKDIR=\([^,]*\).*/\1/p')
[ -d "$folder" ] || exit 0
send=
[ "$GAPWATCH_MAIL" = yes ] && send="--mail $2"
cd / || exit 0
# shellcheck disable=SC2016,SC2086 # the inner shell fills in its own arguments; $send is none or two words
setsid runuser -u "$2" -- env -u LD_PRELOAD -u HOME \
  sh -c 'cd "$1" && job=$2 command=$3 && shift 3 &&
    exec timeout 300 nice -n 19 "$command" epilog --job "$job" --quiet -o "gapwatch-job-$job.txt" "$@"' \
  gapwatch-epilog "$folder" "$1" "$GAPWATCH" $send </dev/null >/dev/null 2>&1 &
exit 0
