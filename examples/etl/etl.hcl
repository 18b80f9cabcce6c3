# Orders of a shop: read page by page from its API, reduced to what a report needs, and
# written to a database; then a message says what was loaded. The API is the connection
# "shop" of ../flowhost.hcl.

# A file beside this one. For PostgreSQL, write instead:
#
#   connection "warehouse" {
#     type   = "postgres"
#     dsn    = secret.warehouse_dsn
#     access = "rw"
#   }
connection "warehouse" {
  type   = "sqlite"
  path   = "warehouse.db"
  access = "rw"
}

plugin "etl" {
  source = "./etl.wasm"

  grant {
    connections = [connection.shop, connection.warehouse]
    publish     = ["etl.loaded"]
  }
}

flow "orders" {
  description = "Loads the orders of the shop into the warehouse."

  trigger "message" "ask" {
    subject = "etl.load"
  }

  task "extract" {
    plugin   = plugin.etl
    function = "extract"
    retries  = 3

    grant {
      connections = [connection.shop]
    }
  }

  task "transform" {
    plugin   = plugin.etl
    function = "transform"
    input    = task.extract.output

    grant {}
  }

  task "load" {
    plugin   = plugin.etl
    function = "load"
    input    = task.transform.output
    retries  = 3

    grant {
      connections = [connection.warehouse]
    }
  }

  task "announce" {
    plugin   = plugin.etl
    function = "announce"
    input    = task.load.output

    grant {
      publish = ["etl.loaded"]
    }
  }

  output "loaded" {
    value = task.load.output
  }
}
