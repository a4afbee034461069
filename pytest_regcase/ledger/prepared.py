"""Constant statements that are run again and again: an attempt is stored, a simulation's newest runs are read.

SQLAlchemy writes them. SQLite's driver runs them, because SQLAlchemy's own way of running one takes longer than
SQLite does. Knows no table.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, cast

from sqlalchemy import Connection, Insert, Select
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.compiler import SQLCompiler


class Prepared:
    """One statement, compiled once; what it names is given by name, in the types that the databases hold."""

    def __init__(self, statement: Insert | Select[Any], columns: Collection[str] | None = None) -> None:
        self._statement = statement
        self._columns = None if columns is None else list(columns)

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run it in the caller's transaction and return every row that it gives."""
        if connection.dialect.name != "sqlite":
            return [tuple(row) for row in connection.execute(self._statement, dict(values))]
        text, names, constants = self._compiled
        driver = connection.connection.driver_connection
        assert driver is not None
        given = [values[name] if name in values else constants[name] for name in names]
        return cast("list[tuple[Any, ...]]", driver.execute(text, given).fetchall())

    @cached_property
    def _compiled(self) -> tuple[str, list[str], Mapping[str, Any]]:
        """The text with a question mark for each value, the values' names in that order, and the constant ones."""
        made = self._statement.compile(dialect=sqlite.dialect(), column_keys=self._columns)
        assert isinstance(made, SQLCompiler)
        assert made.positiontup is not None
        return str(made), made.positiontup, made.params
