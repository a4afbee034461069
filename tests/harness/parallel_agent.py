"""The demo agent with a helper beside it: a second conversation with the very same tools, at the same time.

From the second step on, whenever the main conversation asks, the helper begins anew at the same moment: it asks
for a review, and once more after the answer.
"""

import sys
import threading
from collections.abc import Sequence

from pytest_regcase.demo.agent import DemoAgent, main
from pytest_regcase.demo.chat import Message, Reply, SupplierFailure

REVIEW = "Review what was changed so far."


class ParallelAgent(DemoAgent):
    """Has a helper ask whenever it asks itself."""

    def ask(self, messages: Sequence[Message]) -> Reply:
        """Ask the model, and have the helper ask at the same time once there is something to review."""
        if self.step == 1:
            return super().ask(messages)
        helper = threading.Thread(target=self.help)
        helper.start()
        try:
            return super().ask(messages)
        finally:
            helper.join()

    def help(self) -> None:
        """Hold a short conversation of its own; what comes of it is not used."""
        own: list[Message] = [{"role": "user", "content": REVIEW}]
        for _ in range(2):
            try:
                own.append(self.client.complete(own, self.tools()).as_message())
            except SupplierFailure as failure:
                self.note_failed_call(failure, 0)
                return
            own.append({"role": "user", "content": "Go on."})


if __name__ == "__main__":
    sys.exit(main(agent=ParallelAgent))
