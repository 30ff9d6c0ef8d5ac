"""`torch._functorch`: the settings of differentiated graphs, and functorch's older interfaces."""
from eager._functorch import config
