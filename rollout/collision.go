package rollout

// Collision names the two spec fields under which no rollout can ever end, whatever the
// members do; empty if there are none. The plan then says FloorUnreachable and takes no
// member. It also names the two budgets if both are written as 0, which pauses a rollout
// ([Policy].Zero).
func (p *Policy) Collision() (field, other string) {
	const (
		replicas, most      = "replicas", "maxMembers"
		unavailable, method = "update.maxUnavailable", "update.method"
		surge, floor        = "update.maxSurge", "update.minAvailable"
	)
	switch {
	case p.Desired == 0:
		return "", ""
	case p.MaxUnavailable == 0 && p.surge() == 0 && p.InPlace:
		return unavailable, method
	case p.MaxUnavailable == 0 && p.surge() == 0:
		return unavailable, surge
	case p.most() <= p.Desired-p.MaxUnavailable && p.MaxMembers < p.Desired:
		return most, replicas
	case p.most() <= p.Desired-p.MaxUnavailable:
		return most, surge
	case !p.HasFloor || p.MinAvailable < p.most():
		return "", ""
	case p.HasCeiling && p.MaxMembers <= p.MinAvailable:
		return floor, most
	case p.surge() == 0 && p.MinAvailable == p.Desired:
		return floor, surge
	}
	return floor, replicas
}
