test "names" {
  flow = "release"

  signal "cutof" {}
  approve "aproval" {
    approved = "perhaps"
    reasn    = "no"
  }
  signal "ship/arived" {}
  signal "shop/arrived" {}
  signal "build/arrived" {}
  signal "build" {}
}

test "kinds" {
  flow  = "release"
  until = "3h"

  signal "approval" {}
  approve "cutoff" {
    after = "3h"
  }
  signal "cool" {
    after = "soon"
  }
  approve "cool" {}
  signal "cutoff" {}
  signal "ship/arrived" {
    after   = task.build.output
    payload = input
  }
  approve "ship/arrived" {}
}

test "the same wait again" {
  flow = "release"

  signal "ship/arrived" {}
  signal "ship/arrived" {
    after = "1h"
  }
  signal {}
}
