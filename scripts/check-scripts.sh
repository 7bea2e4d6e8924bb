#!/usr/bin/env bash
# Every script parses, and shellcheck, where it is installed, finds nothing to say.
source "$(dirname "$0")/lib.sh"

mapfile -t shell_scripts < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
mapfile -t python_scripts < <(git ls-files --cached --others --exclude-standard '*.py')

for script in "${shell_scripts[@]}"; do bash -n "$script"; done
for script in "${python_scripts[@]}"; do
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$script"
done
if has shellcheck; then
    shellcheck --external-sources --source-path=SCRIPTDIR "${shell_scripts[@]}"
else
    say "shellcheck is not installed: only the syntax was checked"
fi
say "${#shell_scripts[@]} shell and ${#python_scripts[@]} Python scripts checked"
