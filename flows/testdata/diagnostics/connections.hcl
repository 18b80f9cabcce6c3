variable "stage" {
  default = "test"
}

variable "password" {
  default   = "x"
  sensitive = true
}

locals {
  copied = secret.token
}

secret "token" {
  env = "API_TOKEN"
}

secret "token" {
  env = "OTHER"
}

secret "none" {
}

secret "two" {
  env  = "TOKEN"
  file = "token.txt"
}

secret "no_key" {
  age = "secrets.age"
}

secret "a_key" {
  file = "token.txt"
  key  = "x"
}

secret "forms" {
  env   = "NOT-A-NAME"
  vault = "../sys"
  key   = "x"
}

secret "written" {
  value = "hunter2"
}

connection "no_type" {
  base_url = "https://example.com"
}

connection "bare" {
  type = "http"
}

connection "mixed" {
  type     = "sqlite"
  path     = "../../etc/x.db"
  dsn      = secret.token
  base_url = "https://example.com"
  tls {
    ca = "ca.pem"
  }
}

connection "web" {
  type      = "http"
  base_url  = "https://user:pass@example.com/${var.stage}"
  allow     = ["/repos/**", "GET https://example.com/", "GET /a", "CONNECT /x"]
  redirects = 11
  max_body  = "1GiB"
  timeout   = 5
  private   = ["10.0.0.5", "localhost:80", "10.0.0.5:80", "[::ffff:10.0.0.1]:80", "0.0.0.0:80"]
  headers = {
    "X-Key"   = secret.token
    "x-key"   = "again"
    "Bad Key" = "x"
    "X-Line"  = "a\nb"
    "X-Mixed" = "Bearer ${secret.token}"
  }
  auth {
    bearer = "hunter2"
    basic {
      user     = "x"
      password = secret.token
    }
  }
  retry {
    attempts = 0
  }
  limit {
    rate        = "50"
    concurrency = 0
  }
  tls {
    mode = "disable"
    cert = "cert.pem"
  }
}

connection "empty" {
  type     = "http"
  base_url = "ftp://example.com"
  allow    = []
  auth {
  }
}

connection "secrets" {
  type = "postgres"
  dsn  = var.stage == "test" ? secret.token : secret.missing
}

connection "unknown" {
  type  = "postgres"
  dsn   = secret.tokn
  acces = "rw"
}

connection "password" {
  type = "postgres"
  dsn  = "postgres://app:hunter2@db.example.com/x"
}

connection "sensitive" {
  type = "mysql"
  dsn  = var.password
}

connection "mail" {
  type     = "smtp"
  host     = "mail.example.com:25"
  from     = "Ops <ops@example.com>"
  to       = ["*", "*@example.com", "a@b@c"]
  user     = "ops"
  starttls = "maybe"
}

connection "github" {
  type     = "http"
  base_url = "https://api.example.com"
  allow    = ["GET /repos/**"]
}

connection "github" {
  type = "smtp"
}

connection "run" {
  type = "postgres"
  dsn  = trigger.payload
}

flow "f" {
  locals {
    inner = secret.token
  }

  output "o" {
    value = secret.token
  }

  task "t" {
    plugin   = "./greet.wasm"
    input    = { token = secret.token, text = "x ${secret.token}", way = connection.github }
    config   = { token = secret.token }
    when     = secret.token == "x"
    for_each = [secret.token]
    grant {
      connections = [connection.github, connection.github, connection.gitub, "github", secret.token]
      secrets     = { token = secret.token, other = "x", "bad name" = secret.token, lost = secret.lost }
    }
  }

  task "forms" {
    plugin = "./greet.wasm"
    grant {
      connections = connection.github
      secrets     = secret.token
    }
  }
}
