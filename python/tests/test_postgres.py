# SPDX-License-Identifier: Apache-2.0
"""Rows of a Postgres query, through ADBC and through DuckDB, from a server of the test's own. Without one (scripts/install-packages postgres)
the whole file is skipped, which ctest says."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import pytest
from conftest import SEEDED, same

import eigenveil as ev

POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
if not POSTGRES:
    pytest.skip("there is no Postgres server: scripts/install-packages postgres", allow_module_level=True)
dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
pytestmark = pytest.mark.usefixtures("quiet")


def tool(name, *arguments):
    """The server refuses to be root's: root runs it as Debian's user postgres."""
    own = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    subprocess.run([*own, str(POSTGRES[0] / name), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, cwd="/")


@pytest.fixture(scope="module")
def server():
    """Reached by a socket in a folder of its own, and by nothing else."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="eigenveil-postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    tool("initdb", "-D", folder / "data", "-A", "trust", "-U", "reader", "--no-sync")
    tool("pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off", "start")
    try:
        yield f"host={folder} user=reader dbname=postgres"
    finally:
        tool("pg_ctl", "-D", folder / "data", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def connection(server, rows):
    with dbapi.connect("postgresql:///postgres?" + "&".join(server.split()[:2])) as found:
        with found.cursor() as cursor:
            cursor.execute("create table visits (place bigint, age integer, pulse double precision, weight real, sex text)")
            for place, row in enumerate(visits(rows)):
                cursor.execute("insert into visits values ($1, $2, $3, $4, $5)", (place, *row))
        found.commit()
        yield found


def visits(rows):
    """Halves, which a float of 32 bits holds too; every tenth pulse is missing."""
    for place, row in enumerate(rows[:300]):
        yield int(40 + 10 * row[0]), None if place % 10 == 0 else round(2 * row[1]) / 2, round(2 * row[2]) / 2, "FM"[int(row[5])]


QUERY = "select age, pulse, weight, sex from visits order by place"
SCHEMA = {"age": (0, 110), "pulse": (-5, 5), "weight": (-5, 5), "sex": ["F", "M"]}


@pytest.fixture
def expected(rows, program, tmp_path):
    """The program, on the same rows in a file."""
    lines = [",".join("" if value is None else f"{value}" for value in row) for row in visits(rows)]
    (tmp_path / "visits.csv").write_text("\n".join(["age,pulse,weight,sex", *lines]) + "\n")
    columns = "".join(f'[[column]]\nname = "{name}"\n' + (
        f'kind = "numeric"\nlower = {kind[0]}\nupper = {kind[1]}\n' if name != "sex" else 'kind = "categorical"\nvalues = ["F", "M"]\n')
        for name, kind in SCHEMA.items())
    (tmp_path / "visits.toml").write_text(columns)
    return program("pca", tmp_path / "visits.csv", "--components", 2, "--schema", tmp_path / "visits.toml", "--missing", "zero-row")


def pca():
    return ev.PCA(2, schema=ev.Schema(SCHEMA), missing="zero-row", **SEEDED)


def test_a_query_through_adbc(connection, expected):
    with connection.cursor() as cursor:
        cursor.execute(QUERY)
        same(pca().fit(cursor), expected)
    with connection.cursor() as cursor:
        cursor.execute(QUERY)
        same(pca().fit(cursor.fetch_record_batch()), expected)
    with connection.cursor() as cursor:
        cursor.execute(QUERY)
        same(pca().fit(cursor.fetch_arrow_table()), expected)


def test_numbers_without_a_fixed_size_are_refused_in_words(connection):
    with connection.cursor() as cursor:
        cursor.execute("select age::numeric(20, 3) as age from visits")
        with pytest.raises(ev.BadInput, match="age"):
            ev.PCA(1, ranges=(0, 110), **SEEDED).fit(cursor)


def test_a_query_that_fails_while_it_is_read_charges_nothing(connection, tmp_path):
    ledger = ev.Ledger(tmp_path / "l.db")
    ledger.create("visits", epsilon=5, delta=1e-6)
    with connection.cursor() as cursor:
        cursor.execute("select age / (place - 250) as ratio from visits order by place")
        with pytest.raises(ev.BadInput, match="(?i)division by zero"):
            ev.PCA(1, ranges=(0, 110), epsilon=1, delta=1e-6, ledger=ledger, dataset="visits").fit(cursor)
    connection.rollback()
    assert ledger.show("visits")["reservations"] == []


def test_a_table_through_duckdb(connection, server, expected, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    database = duckdb.connect(config={"extension_directory": str(tmp_path)})
    try:
        try:
            from duckdb_extensions import import_extension  # PyPI has it for some versions

            import_extension("postgres_scanner", con=database)
        except ImportError:
            database.execute("install postgres_scanner")
        database.execute("load postgres_scanner")
    except duckdb.Error as error:
        pytest.skip(f"DuckDB's extension postgres_scanner is not to be had: {str(error).splitlines()[0]}")
    database.execute(f"attach '{server}' as server (type postgres, read_only)")
    same(pca().fit(database.sql("select age, pulse, weight, sex from server.visits order by place")), expected)
