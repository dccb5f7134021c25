#!/bin/sh
# Deploys a version, one at a time, from whichever machine it is started on. `./deploy.sh VERSION`
#
# The script takes its lock itself: started without, it starts itself again under the lock. DYNAMUTEX_TABLE names the table.
set -eu

lock=deploy
if [ "${DYNAMUTEX_NAME-}" != "$lock" ]; then
  exec dynamutex run --wait 10m --ttl 1m "$lock" -- "$0" "$@"
fi

version=$1
log=${DEPLOY_LOG-deployments.log}
say() { echo "$version $*" >>"$log"; }

# The lock is lost, or somebody ends this: begin nothing more. TERM, and soon after that KILL.
trap 'say is given up; exit 1' TERM

say begins "with token $DYNAMUTEX_FENCING_TOKEN"
for stage in build migrate switch; do
  say "$stage" # what a program does here, it does under the lock: let it refuse tokens that are less than the last
done
say is deployed
