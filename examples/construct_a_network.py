"""Construct the network of a convection-diffusion model of 400 states and print its certificate.

The matrix is that of the paper's supplementary example: not normal, 40 zero eigenvalues, 162 complex pairs. The last
lines show how the number of blocks follows from the bound on the condition number, on the paper's Example 3.2.
"""

import ltinet


def main() -> None:
    """Print the certificate, and the trade-off between sparsity and condition."""
    system = ltinet.named_system("convection_diffusion")
    net = ltinet.construct(system)
    print(net.form)
    print()
    print(net)

    print("\ntriangular 10 × 10 matrix of Example 3.2: blocks within a bound on cond(T)")
    A = ltinet.named_system("triangular").A
    for max_condition in (1.5, 5, 15, 1e3, 1e6):
        form = ltinet.block_diagonalize(A, max_condition=max_condition)
        sizes = f"{form.n_blocks:2d} blocks  {form.n_connections:2d} connections"
        print(f"  cond(T) ≤ {max_condition:<8g} {sizes}  cond(T) = {form.condition:.3g}")


if __name__ == "__main__":
    main()
