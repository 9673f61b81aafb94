"""Step `classify`: domain, dynamism and type of the question, beside the strategy that may read them."""

from proto.classify import ClassifyRequest
from services.gateway.mesh import Mesh
from services.gateway.run import Run
from services.kit.errors import ServiceFailure


async def classify(run: Run, mesh: Mesh, request: ClassifyRequest, *, allow_s: float) -> None:
    """Put the classification into `run`; it stays open and unknown when the classifier fails, which `degraded` names.

    A strategy that needs it awaits `run.classified.wait()`, which takes `allow_s` at most.
    """
    try:
        async with run.stage("classify") as stage:
            response = await mesh.classify(request, allow_s=allow_s)
            stage.of(response.timing)
            found = response.classification
            stage.detail = f"{found.domain} {found.domain_certainty:.2f}, {found.dynamism}, {found.question_type}"
        run.classification = found
        for degradation in response.degraded:
            run.degrade(degradation.stage, degradation.reason, degradation.detail)
    except ServiceFailure:
        return
    finally:
        run.classified.set()
