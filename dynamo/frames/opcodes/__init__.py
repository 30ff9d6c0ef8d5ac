"""Handlers of instructions, by family. Importing the package fills `handlers.HANDLERS`."""

from dynamo.frames.opcodes import access, build, calls, exceptions, flow, generators
