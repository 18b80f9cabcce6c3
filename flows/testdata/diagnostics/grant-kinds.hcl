plugin "wide" {
  source = "./greet.wasm"

  grant {
    kv      = { counters = "ro" }
    publish = ["orders.*"]
    request = ["pricing.>"]
    env     = { REGION = "eu" }
    http {
      allow     = ["GET,HEAD https://*.example.com/data/**"]
      redirects = 2
    }
  }
}

flow "f" {
  task "narrow" {
    plugin = plugin.wide
    grant {
      kv      = { counters = "ro" }
      publish = ["orders.new"]
      request = ["pricing.v2.*"]
      env     = { REGION = "us" }
      http {
        allow     = ["GET https://a.example.com/data/x"]
        redirects = 1
      }
    }
  }

  task "wide" {
    plugin = plugin.wide
    grant {
      kv        = { counters = "rw", other = "ro" }
      publish   = ["orders.>"]
      request   = ["price.v2"]
      env       = { ZONE = "x" }
      clock     = "virtual"
      random    = "real"
      artifacts = true
      http {
        allow     = ["GET,POST https://a.example.com/data/x", "GET https://example.com/data/x"]
        redirects = 3
        max_body  = "32MiB"
      }
    }
  }

  task "forms" {
    plugin = "./greet.wasm"
    grant {
      kv      = { ".." = "ro", "a.b" = "rw", c = "wr" }
      publish = [">", "*", "$JS.API.>", "_INBOX.x", "fh.v1.api", "a..b", "a b", "a.>.b", "a*"]
      request = ["$SYS.>", null]
      env     = { "1X" = "x", "A=B" = "x", NONE = null }
      clock   = "wall"
      http {
        allow     = ["GET https://*.com/**", "GET https://127.1/x", "https://example.com/", "* https://example.com/"]
        redirects = -1
        max_body  = "65MiB"
      }
    }
  }

  task "no_http" {
    plugin = "./greet.wasm"
    grant {
      http {
      }
    }
  }

  task "two_keys" {
    plugin = "./greet.wasm"
    grant {
      clock = "real"
      http {
        allow   = ["GET https://example.com/"]
        private = ["10.0.0.5:443"]
      }
    }
  }

  task "alone" {
    plugin = "./greet.wasm"
    grant {
      clock = "real"
    }
  }
}
