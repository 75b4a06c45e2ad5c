"""Construction of networks from systems: `construct`.

A `tolerance` reduces the system first, and the error of the reduction is included in all bounds of the network.
"""

from dataclasses import replace
from typing import Any, overload

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.progress import show_progress
from ltinet.blockdiag.partition import BlockChoice, ClusteringAlgorithm
from ltinet.conversion import as_state_space, eliminate_algebraic
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.network_builder import construct_network, require_single_system
from ltinet.nonlinear.models import Bilinear, NonlinearModel
from ltinet.nonlinear.network import NonlinearNetwork, build_network
from ltinet.second_order import SecondOrder
from ltinet.systems.converters import is_pymor_bilinear


@overload
def construct(  # noqa: D418 - public definitions are documented
    system: NonlinearModel,
    *,
    max_condition: float = ...,
    n_layers: int | None = ...,
    clustering: ClusteringAlgorithm | None = ...,
    balance: bool | None = ...,
) -> NonlinearNetwork:
    """Return the network of a model with products."""


@overload
def construct(  # noqa: D418 - see above
    system: Any,
    *matrices: Any,
    max_condition: float = ...,
    n_layers: int | None = ...,
    clustering: ClusteringAlgorithm | None = ...,
    balance: bool | None = ...,
    tolerance: float | None = ...,
) -> DynamicNetwork:
    """Return the network of a linear system."""


def construct(
    system: Any,
    *matrices: Any,
    max_condition: float = 1e4,
    n_layers: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool | None = None,
    tolerance: float | None = None,
) -> DynamicNetwork | NonlinearNetwork:
    """Construct the neural network of a system without training (Algorithms 1 and 2).

    The network has the same input–output map as the system. The layers are chosen as in `block_diagonalize`: by
    default the sparsest form found whose transformation T satisfies cond₂(T) ≤ `max_condition`.

    Parameters
    ----------
    system : StateSpace, SecondOrder, Bilinear, LPV, QuadraticBilinear, tuple or object
        System in continuous or discrete time; any object that `as_state_space` accepts, such as (A, B, C). A model with
        products, also a `BilinearModel` of pyMOR, gives a network whose layers are those of its linear part.
    *matrices : array_like
        Not accepted; the error message shows how to put several matrices into a tuple.
    max_condition : float, optional
        Limit on cond₂(T). A higher limit usually gives fewer connections, a lower one loses less accuracy.
    n_layers : int, optional
        Number of layers, instead of the number that follows from `max_condition`.
    clustering : object with a method `fit_predict`, optional
        Clustering algorithm of scikit-learn that assigns eigenvalues to layers.
    balance : bool, optional
        True scales the states to similar sizes before the decomposition, False leaves them as they are. None takes the
        sparser of the two networks, unless its cond₂(T) in the units of the user exceeds 4.5e6 (1e-9 divided by the
        machine precision) and that of the other does not; `print(net.form)` shows the choice and its reason.
    tolerance : float, optional
        Reduces the system first, to the lowest order with ‖G − G_r‖∞ ≤ tolerance·‖G_r‖∞, as `reduce` does. Large
        sparse systems stay sparse. All error bounds of the network include the reduction error, pointwise in time:
        `net.reduction_error` times the L2 norm of u. Each mode kept of a `SecondOrder` model becomes one second-order
        neuron.

    Returns
    -------
    DynamicNetwork or NonlinearNetwork
        Network of first- and second-order neurons; with product neurons for a model with products.

    Raises
    ------
    InvalidSystemError
        If `system` is not a real system, or cannot be reduced to the tolerance.
    PartitionError
        If the requested layers do not exist.

    See Also
    --------
    block_diagonalize : Block-diagonal form alone.
    condition_tradeoff : All forms that some `max_condition` selects.

    Examples
    --------
    >>> import ltinet
    >>> system = ltinet.named_system("mass_spring_damper", n_masses=10)
    >>> net = ltinet.construct(system, max_condition=100)
    >>> net.n_second_order, net.n_connections
    (10, 0)
    """
    system = require_single_system(system, matrices)
    if is_pymor_bilinear(system):
        system = Bilinear.from_pymor(system)
    if isinstance(system, NonlinearModel):
        if tolerance is not None:
            raise InvalidSystemError(
                "tolerance is for linear systems. Reduce a model with products by ltinet.reduce_products(model, order=…)."
            )
        blocks = BlockChoice(max_condition, n_layers, clustering, count_name="n_layers")
        return build_network(system, blocks, balance=balance)
    if tolerance is not None:
        # Imported here because importing the reduction takes long and few networks need it.
        from ltinet.reduction.dispatch import dispatch_reduction
        from ltinet.reduction.rational_krylov import combine_callbacks

        model = system if isinstance(system, SecondOrder) else eliminate_algebraic(system)
        with show_progress(f"reducing {model.n_states} states") as report:
            reduced = dispatch_reduction(
                model, tolerance=tolerance, callback=combine_callbacks(None, report, tolerance)
            )
        if reduced.network is not None:
            settings = reduced.system.signal_settings
            return DynamicNetwork(reduced.network, reduction_error=reduced.outcome.h2_bound(), signal_settings=settings)
        net = construct(
            reduced.system, max_condition=max_condition, n_layers=n_layers, clustering=clustering, balance=balance
        )
        return replace(net, reduction_error=reduced.outcome.h2_bound())
    state_space = as_state_space(system)
    choice = BlockChoice(max_condition, n_layers, clustering, count_name="n_layers")
    with limit_blas_threads(state_space.n_states):
        result = construct_network(state_space.matrices, choice, balance=balance)
    return DynamicNetwork(result.network, result.form, state_space, result.blocks)
