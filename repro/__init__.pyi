from .cluster.spec import Cluster as Cluster
from .core.policy import make as make
from .core.records import Result as Result
from .figures.figure import figure as figure
from .preferences.interface import Preferences as Preferences
from .sim.simulate import simulate as simulate
from .trace.load import load as load

__version__: str
