"""Images for the nodes: a folder with programs and the libraries that they load, as an OCI archive of one layer."""

import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

SCRIPTS = pathlib.Path(__file__).parent / "image"
# What the scripts call.
SHELL = ["sh", "sleep", "dd", "nc", "mkdir", "printenv"]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def libraries(program):
    """What the loader maps for a program, the loader itself among it."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


def put(root, file, to):
    target = root / to.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
    target.chmod(0o755)


def layer(programs, scripts):
    """A file system as a tar: programs by where they belong, with their libraries, and scripts of the folder `image`, which a shell runs."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for place, program in programs.items():
            put(root, program, place)
            for library in libraries(program):
                put(root, library, library)
        for name in scripts:
            put(root, SCRIPTS / name, f"/usr/local/bin/{name}")
        if scripts:
            put(root, shutil.which("busybox"), "/bin/busybox")
            for name in SHELL:
                (root / "bin" / name).symlink_to("busybox")
        (root / "tmp").mkdir()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(root, arcname=".", filter=owned_by_root)
        return packed.getvalue()


def owned_by_root(info):
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = "root"
    return info


def archive(names, programs, out, scripts=(), entrypoint=None):
    """Writes an image, which has these names, for `ctr images import`."""
    packed = layer(programs, scripts)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(packed)]},
        }
    ).encode()
    kind = "application/vnd.oci.image."
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": kind + "manifest.v1+json",
            "config": {"mediaType": kind + "config.v1+json", "digest": digest(config), "size": len(config)},
            "layers": [{"mediaType": kind + "layer.v1.tar", "digest": digest(packed), "size": len(packed)}],
        }
    ).encode()
    entry = {"mediaType": kind + "manifest.v1+json", "digest": digest(manifest), "size": len(manifest)}
    named = [{**entry, "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}} for name in names]
    index = json.dumps({"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": named}).encode()
    with tarfile.open(out, "w") as tar:
        members = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index}
        members |= {"blobs/sha256/" + digest(each)[7:]: each for each in (config, manifest, packed)}
        for path, data in members.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
