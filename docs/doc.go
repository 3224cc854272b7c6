// Package docs gives programs the pages of this folder that they show:
//
//	page, ok := docs.ErrorPage("not-found") // docs/reference/errors.md#not-found
package docs
