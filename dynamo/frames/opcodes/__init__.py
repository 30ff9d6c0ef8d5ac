"""What each instruction does to a captured frame, by family. Importing the package fills `handlers.HANDLERS`."""

from dynamo.frames.opcodes import access, build, calls, exceptions, flow, generators, stack
