from . import policies as policies
from .comparison.compare import compare as compare
from .comparison.result import Comparison as Comparison
from .engine.many import simulate_many as simulate_many
from .engine.simulate import simulate as simulate
from .figures.figure import figure as figure
from .model.cluster.spec import Cluster as Cluster
from .model.decision import Run as Run
from .model.decision import RunSet as RunSet
from .model.decision import Shares as Shares
from .model.elastic import Elastic as Elastic
from .model.grouped import Grouped as Grouped
from .model.policy import Order as Order
from .model.policy import Policy as Policy
from .model.policy import make as make
from .model.policy import register as register
from .model.records import Result as Result
from .model.typed_shares import TypedShares as TypedShares
from .model.view import View as View
from .papers.pcs.preferences import Preferences as Preferences
from .testing import check_policy as check_policy
from .trace.dressing import dress as dress
from .trace.load import load as load
from .trace.predictions import predict_durations as predict_durations

__version__: str
