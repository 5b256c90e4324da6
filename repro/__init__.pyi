from .engine.simulate import simulate as simulate
from .figures.figure import figure as figure
from .model.cluster.spec import Cluster as Cluster
from .model.policy import make as make
from .model.records import Result as Result
from .papers.pcs.preferences import Preferences as Preferences
from .trace.load import load as load

__version__: str
