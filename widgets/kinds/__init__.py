"""Controllers of the kinds of case on the screen, one module for each kind."""

from importlib import import_module
from pkgutil import iter_modules

from widgets.kinds.controller import CaseController

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

#: The controller class for each ``SMEPacket.kind``.
CONTROLLER_BY_KIND: dict[str, type[CaseController]] = {
    controller.kind: controller for controller in CaseController.__subclasses__()
}
