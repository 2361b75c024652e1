"""Files from elsewhere: nothing outside of them is read, no code runs, memory stays bounded, and
every fault is one FileError.
"""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

import flexjax as fx
from flexjax.study.identify.records._read import read_columns
from tests._sample import sample_trajectory

T = np.linspace(0.0, 1.0, 50)
SECRET = b"the content of another file, which nobody should see" * 4


@pytest.fixture(scope="module")
def traj():
    return sample_trajectory()


def netcdf(path: Path, **more) -> Path:
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", data=T)
        time.make_scale("time")
        for name, values in {"gauge": np.sin(T), **more}.items():
            file.create_dataset(name, data=values).dims[0].attach_scale(time)
    return path


def good(path: Path) -> Path:
    """A healthy data file of that kind."""
    if path.suffix == ".npz":
        np.savez_compressed(path, time=T, gauge=np.sin(T))
    elif path.suffix == ".mat":
        scipy.io.savemat(
            path, {"time": T, "gauge": np.sin(T), "units": {"gauge": "1"}}, do_compression=True
        )
    elif path.suffix == ".nc":
        netcdf(path)
    else:
        path.write_text("time,gauge\n" + "".join(f"{t},{np.sin(t)}\n" for t in T))
    return path


def test_netcdf_reads_no_other_file(tmp_path, traj):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(SECRET)
    count = len(SECRET) // 8
    cases = {"storage": r"values in .*secret", "link": "link to another file", "view": "a view"}
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["x"] = T
    for case, message in cases.items():
        for name in ("data.nc", "run.nc"):
            path = tmp_path / f"{case}-{name}"
            if name == "run.nc":
                fx.save_trajectory(traj, path)
            else:
                netcdf(path)
            with h5py.File(path, "a") as file:
                deep = file.create_group("deep") if name == "data.nc" else file
                if case == "storage":
                    deep.create_dataset(
                        "stolen", (count,), "f8", external=[(str(secret), 0, 8 * count)]
                    )
                elif case == "link":
                    deep["stolen"] = h5py.ExternalLink(str(other), "/x")
                else:
                    layout = h5py.VirtualLayout((len(T),), "f8")
                    layout[:] = h5py.VirtualSource(str(other), "x", (len(T),))
                    deep.create_virtual_dataset("stolen", layout)
            with pytest.raises(fx.FileError, match=message):
                (fx.load_trajectory if name == "run.nc" else read_columns)(path)


def test_zarr_reads_no_other_file_and_runs_no_code(tmp_path, traj):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(SECRET)
    path = fx.save_trajectory(traj, tmp_path / "run.zarr")
    chunk = path / "energy_work" / "0"
    chunk.unlink()
    chunk.symlink_to(secret)
    with pytest.raises(fx.FileError, match="link or a device"):
        fx.load_trajectory(path)
    fx.save_trajectory(traj, path)
    meta = json.loads((path / "dof" / ".zarray").read_text())
    meta["filters"] = [{"id": "pickle", "protocol": 5}]
    (path / "dof" / ".zarray").write_text(json.dumps(meta))
    with pytest.raises(fx.FileError, match="codec 'pickle'"):
        fx.load_trajectory(path)


def test_zarr_without_a_chunk_is_refused(tmp_path, traj):
    path = fx.save_trajectory(traj, tmp_path / "run.zarr")
    (path / "status" / "0").unlink()  # zarr reads a missing chunk as zeros: status ok
    with pytest.raises(fx.FileError, match="0 of 1 chunks"):
        fx.load_trajectory(path)


def test_links_inside_a_file_are_fine(tmp_path):
    path = netcdf(tmp_path / "data.nc")
    with h5py.File(path, "a") as file:
        file["again"] = h5py.SoftLink("/gauge")
    assert "gauge" in read_columns(path)
    with h5py.File(path, "a") as file:
        group = file.create_group("a")
        group["a"] = group
    with pytest.raises(fx.FileError, match="contains itself"):
        read_columns(path)


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".nc"])
def test_any_damage_is_one_error(tmp_path, suffix):
    """Cut off anywhere, or with bytes changed: a FileError that names the file, or numbers.

    Bytes of HDF5 files are not changed: the C library itself crashes on some.
    """
    content = good(tmp_path / f"good{suffix}").read_bytes()
    assert set(read_columns(tmp_path / f"good{suffix}")) >= {"time", "gauge"}
    path, rng = tmp_path / f"bad{suffix}", np.random.default_rng(0)
    refused = 0
    cuts = [content[:n] for n in (0, 1, 3, 7, 21, 100, 130, 150, *range(200, len(content), 157))]
    for _ in range(120 if suffix != ".nc" else 0):
        changed = bytearray(content)
        for at in rng.integers(0, len(content), rng.integers(1, 6)):
            changed[at] = rng.integers(0, 256)
        cuts.append(bytes(changed))
    for data in cuts:
        path.write_bytes(data)
        try:
            read_columns(path)
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > len(cuts) // 3


def mat5(*elements: bytes) -> bytes:
    return (
        b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM") + b"".join(elements)
    )


def matrix(kind: int, shape: tuple[int, int], body: bytes = b"") -> bytes:
    inner = struct.pack("<4I", 6, 8, kind, 0) + struct.pack("<2I2i", 5, 8, *shape)
    inner += struct.pack("<2I8s", 1, 4, b"time") + body
    return struct.pack("<2I", 14, len(inner)) + inner


def bomb(path: Path, kind: str) -> None:
    """A small file that declares some hundred gigabytes."""
    huge = 2**35
    if kind == "npz header":
        with zipfile.ZipFile(path, "w") as archive:
            head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({huge},), }}".ljust(117)
            archive.writestr("time.npy", b"\x93NUMPY\x01\x00v\x00" + head.encode() + b"\n")
    elif kind == "npz zeros":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("time.npy", "w") as file:
                shape = 2**25 + 2**22
                head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape},), }}"
                file.write(b"\x93NUMPY\x01\x00v\x00" + head.ljust(117).encode() + b"\n")
                for _ in range(2**8 + 2**5):
                    file.write(bytes(2**20))
    elif kind == "npz objects":
        np.savez(path, time=np.array([{}, []], dtype=object))
    elif kind == "mat cell":
        path.write_bytes(mat5(matrix(1, (2**30, 2**30))))
    elif kind == "mat element":
        path.write_bytes(mat5(matrix(6, (1, 1), struct.pack("<2I", 9, 2**32 - 8))))
    elif kind == "mat zeros":
        inner = zlib.compress(struct.pack("<2I", 14, 2**28) + bytes(2**28), 6)
        path.write_bytes(mat5(struct.pack("<2I", 15, len(inner)) + inner))
    elif kind == "mat nested":
        body = b""
        for _ in range(3000):
            body = matrix(1, (1, 1), body)
        path.write_bytes(mat5(body))
    elif kind == "mat version 4":
        path.write_bytes(struct.pack("<5i5s", 0, 2**30, 2**30, 0, 5, b"time\0"))
    elif kind == "nc shape":
        with h5py.File(path, "w") as file:
            file.create_dataset("time", (huge,), "f8", chunks=(1024,)).make_scale("time")
    elif kind == "nc zeros":
        with h5py.File(path, "w") as file:
            kwargs = {"chunks": (2**22,), "compression": "gzip", "compression_opts": 1}
            data = file.create_dataset("time", (2**25 + 2**22,), "f8", **kwargs)
            data[:] = 0.0
            data.make_scale("time")
    elif kind == "nc texts":
        text = "x" * 2**20
        with h5py.File(path, "w") as file:
            space = h5py.h5s.create_simple((2000,))
            data = file.create_dataset("name", (2000,), h5py.string_dtype(), chunks=(2000,))
            data[0] = text
            # Every entry refers to the one text in the heap of the file.
            raw = data.id.read_direct_chunk((0,))[1]
            data.id.write_direct_chunk((0,), raw[:16] * 2000)
            del space


@pytest.mark.parametrize(
    "kind",
    [
        "npz header",
        "npz zeros",
        "npz objects",
        "mat cell",
        "mat element",
        "mat zeros",
        "mat nested",
        "mat version 4",
        "nc shape",
        "nc zeros",
        "nc texts",
    ],
)
def test_memory_stays_bounded(tmp_path, kind):
    path = tmp_path / f"bomb.{kind.split()[0]}"
    bomb(path, kind)
    assert path.stat().st_size < 2e6
    with pytest.raises(fx.FileError) as caught:
        read_columns(path)
    assert str(path) in str(caught.value) and "expected" in str(caught.value).lower()
    assert not isinstance(caught.value.__cause__, MemoryError)


def test_zarr_bombs(tmp_path, traj):
    path = tmp_path / "run.zarr"

    def change(name: str, **fields) -> None:
        fx.save_trajectory(traj, path)
        meta = json.loads((path / name / ".zarray").read_text())
        (path / name / ".zarray").write_text(json.dumps(meta | fields))

    change("time", shape=[2**40])
    with pytest.raises(fx.FileError, match="declares"):
        fx.load_trajectory(path)
    fx.save_trajectory(traj, path)
    chunk = path / "time" / "0"
    content = bytearray(chunk.read_bytes())
    content[4:8] = struct.pack("<I", 2**31)
    chunk.write_bytes(content)
    with pytest.raises(fx.FileError, match="declares 2147483648 bytes"):
        fx.load_trajectory(path)
    fx.save_trajectory(traj, path)
    import numcodecs

    codec = numcodecs.get_codec({"id": "blosc"})
    (path / "dof" / "0").write_bytes(codec.encode(struct.pack("<I", 2**31)))
    with pytest.raises(fx.FileError, match="texts in"):
        fx.load_trajectory(path)


def test_damaged_trajectories_are_one_error(tmp_path, traj):
    for name in ("run.nc", "run.zarr"):
        path = fx.save_trajectory(traj, tmp_path / name)
        data = fx.to_dataset(traj)
        cases = {
            "final_structure": [
                "{",
                "[" * 3000,
                '{"array": 99}',
                '{"class": 3}',
                '{"dict": {"a": 1}}',
            ],
            "stats_structure": ["{}", '{"class": "flexjax.term:State", "fields": {}}'],
            "robot": ["x = ", "", "name = 'x'"],
        }
        for key, texts in cases.items():
            for text in texts if name == "run.nc" else texts[:1]:
                broken = data.assign_attrs({key: text})
                if name == "run.nc":
                    broken.to_netcdf(path, engine="h5netcdf")
                else:
                    broken.to_zarr(path, mode="w", consolidated=False, zarr_format=2)
                with pytest.raises(ValueError, match="trajectory file"):
                    fx.load_trajectory(path)
    broken = data.isel(time=slice(None, -1)).rename(time="moment").drop_vars("moment")
    broken = broken.assign_coords(time=("time", data.time.values))
    broken.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with pytest.raises(fx.FileError, match="dimensions"):
        fx.load_trajectory(tmp_path / "run.nc")


def test_stores_of_format_3_are_read(tmp_path, traj):
    fx.to_dataset(traj).to_zarr(tmp_path / "run.zarr", consolidated=False, zarr_format=3)
    np.testing.assert_array_equal(fx.load_trajectory(tmp_path / "run.zarr").q, traj.q)


def test_checkpoints_are_checked(tmp_path):
    from flexjax.study.identify.fit._fit import resume

    path = tmp_path / "kept.npz"
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(fx.FileError, match="checkpoint .*kept.npz"):
        resume(path, None)
    np.savez(path, z=T)
    with pytest.raises(fx.FileError, match="a checkpoint of fx.identify"):
        resume(path, None)
