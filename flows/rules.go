package flows

import (
	"encoding/json"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Rule names what a diagnostic is about. Rules are stable: tools may select on
// them, the messages may change.
type Rule = diag.Rule

// Extra is what every diagnostic of this package carries in its Extra field.
type Extra = diag.Extra

// RuleOf is the rule of a diagnostic, empty for one of another package.
func RuleOf(d *hcl.Diagnostic) Rule { return diag.RuleOf(d) }

// DiagnosticsJSON gives diagnostics as one JSON object, for editors and other
// programs. Files are those of [Set.Files].
func DiagnosticsJSON(diags hcl.Diagnostics, files map[string]*hcl.File) json.RawMessage {
	return diag.JSON(diags, files)
}

// Rules of diagnostics; the comments are at the constants of package diag.
const (
	RuleSyntax           = diag.RuleSyntax
	RuleStructure        = diag.RuleStructure
	RuleLater            = diag.RuleLater
	RuleUnknownArgument  = diag.RuleUnknownArgument
	RuleUnknownBlock     = diag.RuleUnknownBlock
	RuleBlockWithEquals  = diag.RuleBlockWithEquals
	RuleArgumentAsBlock  = diag.RuleArgumentAsBlock
	RuleMissing          = diag.RuleMissing
	RuleConflict         = diag.RuleConflict
	RuleDuplicate        = diag.RuleDuplicate
	RuleName             = diag.RuleName
	RulePath             = diag.RulePath
	RuleValue            = diag.RuleValue
	RuleType             = diag.RuleType
	RuleExpression       = diag.RuleExpression
	RuleNull             = diag.RuleNull
	RuleReference        = diag.RuleReference
	RuleUnknownRoot      = diag.RuleUnknownRoot
	RuleUnknownName      = diag.RuleUnknownName
	RuleUnknownAttribute = diag.RuleUnknownAttribute
	RuleRunValue         = diag.RuleRunValue
	RuleMisplaced        = diag.RuleMisplaced
	RuleEnvironment      = diag.RuleEnvironment
	RuleSelfReference    = diag.RuleSelfReference
	RuleCycle            = diag.RuleCycle
	RuleFileFunction     = diag.RuleFileFunction
	RulePlugin           = diag.RulePlugin
	RuleDigest           = diag.RuleDigest
	RuleGrant            = diag.RuleGrant
	RuleAllow            = diag.RuleAllow
	RuleFunction         = diag.RuleFunction
	RuleSchedule         = diag.RuleSchedule
	RuleSubject          = diag.RuleSubject
	RuleReserved         = diag.RuleReserved
	RuleVariable         = diag.RuleVariable
	RuleAssertion        = diag.RuleAssertion
	RuleMore             = diag.RuleMore
)
