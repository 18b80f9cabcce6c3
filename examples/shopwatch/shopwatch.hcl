# The orders of a shop, reduced and stored, without a plugin of one's own. The shop is that of
# the example etl: 'make run' starts it, and ../flowhost.hcl declares its connection.

connection "orders" {
  type   = "sqlite"
  path   = "orders.db"
  access = "rw"
}

flow "watch" {
  description = "Stores the orders of the shop, and counts how often it has done so."

  trigger "message" "ask" {
    subject = "shopwatch.ask"
  }

  task "fetch" {
    plugin   = "std/http"
    function = "pages"
    input    = { connection = "shop", url = "/orders", items = "orders", next = "next", parameter = "after" }
    retries  = 3

    grant {
      connections = [connection.shop]
    }
  }

  task "reduce" {
    plugin = "std/jq"
    input = {
      data  = task.fetch.output.items
      query = "map(select(.state != \"canceled\") | { id, placed, cents: ([.lines[] | .quantity * .cents] | add) })"
    }
  }

  task "table" {
    plugin   = "std/sql"
    function = "execute"
    input    = { connection = "orders", sql = "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, placed TEXT, cents INTEGER)" }

    grant {
      connections = [connection.orders]
    }
  }

  task "store" {
    plugin   = "std/sql"
    function = "insert"
    input    = { connection = "orders", table = "orders", key = ["id"], rows = task.reduce.output }
    after    = [task.table]

    grant {
      connections = [connection.orders]
    }
  }

  task "count" {
    plugin   = "std/kv"
    function = "count"
    input    = { bucket = "shopwatch", key = "runs" }
    after    = [task.store]

    grant {
      kv = { shopwatch = "rw" }
    }
  }

  output "stored" {
    value = task.store.output.rows
  }
}
