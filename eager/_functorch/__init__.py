"""`torch._functorch`: where programs find the settings of differentiated graphs."""
from eager._functorch import config
