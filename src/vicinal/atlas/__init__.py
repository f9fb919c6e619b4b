"""An atlas: versions of one map, whose areas keep their names while its rows change."""
