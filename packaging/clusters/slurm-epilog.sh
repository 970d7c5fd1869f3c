#!/bin/sh
# Slurm's Epilog (slurm.conf: Epilog=/etc/slurm/epilog.d/*): tells the owner of a job that wrote profiles in three lines
# what it used, where its time went and what to do, in gapwatch-job-ID.txt beside them; with GAPWATCH_MAIL=yes by mail.
#
# Slurm waits for an epilog, and drains the node of one that fails: this one does its work in the background, as the
# user, on the first node of the job only, and always ends with 0.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin:/opt/pbs/bin
export PATH
[ -n "$SLURM_JOB_ID" ] && [ -n "$SLURM_JOB_USER" ] && [ -d "$SLURM_JOB_WORK_DIR" ] || exit 0
GAPWATCH=${GAPWATCH:-/usr/bin/gapwatch}
[ -x "$GAPWATCH" ] || exit 0
first=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-$SLURM_NODELIST}" 2>/dev/null | head -n 1)
[ "$first" = "$SLURMD_NODENAME" ] || exit 0
job=${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID} # as sacct calls a task of an array
send=
[ "$GAPWATCH_MAIL" = yes ] && send="--mail $SLURM_JOB_USER"
cd / || exit 0
# The substitution ends once the child is in a session of its own: Slurm may kill what is left of this one.
# shellcheck disable=SC2016,SC2086 # the inner shells fill in their own arguments; $send is none or two words
: "$(setsid -f sh -c 'exec </dev/null >/dev/null 2>&1; exec "$@"' gapwatch-epilog \
  runuser -u "$SLURM_JOB_USER" -- env -u LD_PRELOAD -u HOME \
  sh -c 'cd "$1" && job=$2 command=$3 && shift 3 &&
    exec timeout 300 nice -n 19 "$command" epilog --job "$job" --quiet -o "gapwatch-job-$job.txt" "$@"' \
  gapwatch-epilog "$SLURM_JOB_WORK_DIR" "${job:-$SLURM_JOB_ID}" "$GAPWATCH" $send)"
exit 0
