variable "home" {
  default = "/home"
}

plugin "wrong" {
  source = "./greet.wasm"

  grant {
    files = {
      "/etc"                  = "ro"
      "../secrets"            = "ro"
      "."                     = "ro"
      "./.git"                = "ro"
      "./missing"             = "ro"
      "./grants.hcl"          = "ro"
      "./out"                 = "wr"
      "./twice"               = "rw"
      "./twice/"              = "rw"
      "./within"              = "rw"
      "./within/it"           = "rw"
      "./same"                = "rw"
      "./same"                = "rw"
      (true ? var.home : "x") = "rw"
      "./null"                = null
    }
    http = ["GET https://example.com/*"] # a block
  }
}

plugin "right" {
  source = "./greet.wasm"

  grant {
    files = { "./out" = "rw" }
  }
}

plugin "nothing" {
  source = "./greet.wasm"
}

flow "a" {
  task "narrow" {
    plugin = plugin.right
    grant {
      files = { "./out/eu" = "ro" } # a task may make it
    }
  }
  task "other" {
    plugin = plugin.right
    grant {
      files = { "./outer" = "rw" }
    }
  }
  task "none" {
    plugin = plugin.nothing
    grant {
      files = { "./out" = "rw" }
    }
  }
  task "not_twice_reported" {
    plugin = plugin.wrong
    grant {
      files = { "./out" = "rw" }
    }
  }
  task "kinds" {
    plugin = "./greet.wasm"
    grant {
      files = "./out"
      file  = {}
    }
  }
  task "run_value" {
    plugin = "./greet.wasm"
    grant {
      files = { (trigger.payload) = "rw" }
    }
    grant {
    }
  }
}
