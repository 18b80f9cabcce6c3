# Settings of the host that serves the examples.

# The API of examples/etl, a small program on this machine: 'make run' starts it. Its
# address is not public, so the connection is the operator's.
connection "shop" {
  type     = "http"
  base_url = "http://127.0.0.1:8321"
  allow    = ["GET /orders"]

  retry {
    attempts = 5
  }
  limit {
    concurrency = 2
  }
}
