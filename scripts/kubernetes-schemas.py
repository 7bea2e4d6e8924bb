#!/usr/bin/env python3
"""Makes schemas that stand alone, as kubeconform reads them, of those in a PyPI package.

kubernetes-schemas.py WHEEL FOLDER: FOLDER/v1.31.0-strict/deployment-apps-v1.json and so on, with what they refer to
inside each. The package is kubernetes-validate, whose files are made of Kubernetes' own OpenAPI description.
"""

import io
import json
import re
import sys
import zipfile
from pathlib import Path

KINDS = """configmap-v1 deployment-apps-v1 horizontalpodautoscaler-autoscaling-v2 ingress-networking-v1 namespace-v1
networkpolicy-networking-v1 poddisruptionbudget-policy-v1 secret-v1 service-v1 serviceaccount-v1 statefulset-apps-v1""".split()
REFERENCE = re.compile(r'"\$ref": "(?:/api/_definitions\.json)?(#/\$defs/([^"]+))"')


def standing_alone(text, definitions):
    wanted, done = set(name for _, name in REFERENCE.findall(text)), {}
    while wanted - done.keys():
        for name in wanted - done.keys():
            one = json.dumps(definitions[name])
            done[name] = json.loads(REFERENCE.sub(r'"$ref": "\1"', one))
            wanted = wanted | set(found for _, found in REFERENCE.findall(one))
    return json.dumps(json.loads(REFERENCE.sub(r'"$ref": "\1"', text)) | {"$defs": done})


def main():
    package, folder = zipfile.ZipFile(io.BytesIO(Path(sys.argv[1]).read_bytes())), Path(sys.argv[2])
    for path in package.namelist():
        version = re.fullmatch(r".*/(v[0-9.]+)-local-strict/_definitions\.json", path)
        if not version:
            continue
        definitions = json.loads(package.read(path))["$defs"]
        place = folder / f"{version[1]}-strict"
        place.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            text = json.dumps(json.loads(package.read(path.replace("_definitions", kind))))
            (place / f"{kind}.json").write_text(standing_alone(text, definitions))
    print(f"{len(list(folder.iterdir()))} versions of {len(KINDS)} schemas")


if __name__ == "__main__":
    main()
