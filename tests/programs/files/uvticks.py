"""uvloop's loop, with a line of JSON in each tick."""

import asyncio
import json

import uvloop  # type: ignore[import-not-found]


async def main() -> None:
    while True:
        json.dumps({str(number): number for number in range(200)})
        await asyncio.sleep(0.005)


uvloop.run(main())
