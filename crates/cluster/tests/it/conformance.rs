//! The cases of all engines, on a single scheduler and over a twin.

mod one_scheduler {
    ganger_cluster::cases!(ganger_cluster::conformance::One);
}

mod twin {
    ganger_cluster::cases!(ganger_cluster::conformance::Twins);
}

mod twin_store {
    ganger_cluster::store_cases!(ganger_cluster::conformance::TwinStores);
}

mod registrar_store {
    ganger_cluster::store_cases!(ganger_cluster::conformance::Registrars);
}

mod strong_names_over_a_twin {
    // case: 37
    ganger_cluster::strong_cases!(ganger_cluster::conformance::TwinStrong);
}

mod strong_names_over_a_registrar {
    // case: 37
    ganger_cluster::strong_cases!(ganger_cluster::conformance::Registrars);
}
