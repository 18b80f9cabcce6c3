flow "spy" {
  trigger "message" "events" { subject = "fh.v1.run.*.*.finished" }
  trigger "message" "all" { subject = ">" }
  trigger "message" "any" { subject = "*.created" }
  trigger "message" "api" { subject = "$JS.API.>" }
  trigger "message" "answers" { subject = "_INBOX.>" }
  trigger "message" "history" {
    subject = "orders.>"
    stream  = "FH_HISTORY"
    durable = "spy"
  }
  trigger "message" "bucket" {
    subject = "orders.>"
    stream  = "KV_secrets"
    durable = "spy2"
  }
  wait "constant" { subject = "fh.v1.api.run.pay" }
  wait "template" { subject = "_INBOX.${run.id}" }
  wait "fine" { subject = "orders.${run.id}.paid" }
}
