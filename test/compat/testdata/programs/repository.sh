# A Git repository: commit, branch, merge, diff and archive.
set -euo pipefail
git init -q -b main repo
cd repo
git config user.name tester
git config user.email tester@example.com
echo one >file
git add file
git commit -qm first
git switch -qc topic
echo two >>file
git commit -qam second
git switch -q main
git merge -q --no-ff -m merge topic
git log --oneline | wc -l
git diff --stat HEAD~1 | tail -1
git clone -q . ../clone
git gc -q
git archive HEAD | tar t
git fsck 2>&1 | wc -l
