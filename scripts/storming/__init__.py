"""The stateful storm: workers with a model of the API drive the real service against origins that misbehave."""
