# Generated from proto/__init__.py by `make contracts`: edits are lost.
"""The contracts: what crosses the wire, one module a service, and nothing else.

The pydantic models here are the one source. `proto/openapi/*.json` and `proto/cragmesh/v1/*.proto` are generated from
them by `make contracts`, and a test fails when they drift. The JSON on the wire is the proto3 JSON mapping of the
exported messages: snake_case names, `null` means the default, 32-bit integers, doubles, no unions.
"""
